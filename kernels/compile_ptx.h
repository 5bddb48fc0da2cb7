// Compiles kernel sources to PTX while the program runs, with the flags of the build.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// Path from the source root ("kernels/gla/chunk.cu") and text.
using SourceTree = std::vector<std::pair<std::string, std::string>>;

/// There is no compiler, it refuses, or its result cannot be kept: nothing that another case would mend, so
/// no BadInput, which a search takes for a case that the kernel refuses.
struct CannotCompile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "kernels/gla/chunk.cu" of "gla/chunk.bf16.fp32".
std::string source_path(const std::string& module);

/// Those of the files that one of them is made of: itself, transitively what it includes, and, where it is
/// among them, what stands before every kernel in place of CUDA's header (device/cuda_instruction.cuh).
SourceTree with_includes(const SourceTree&, const std::string& path);

/// As a GPU gets it; or plainly, without optimisation: each statement has instructions of its own, with its
/// line and those of the calls around it.
enum class Compiled { optimised, plainly };

/// The module ("gla/chunk.bf16.fp32") compiled from these sources. Kept in memory and in a folder
/// (ASSAY_CACHE; build/kernels where the program was built, else ~/.cache/assay) by a digest of all it is
/// made from: sources, options, nvcc's version. Any number of threads and processes may ask at once.
/// Throws CannotCompile where there is no nvcc or where it refuses (its first error line).
std::shared_ptr<const std::string> compile_module(const SourceTree&, const std::string& module,
                                                  Compiled = Compiled::optimised);

/// That folder: below the build folder where the program was built, else where a user's caches are.
std::filesystem::path cache_folder();

/// Seconds that compile_module has taken so far, waiting for another thread that compiles the same included:
/// over all threads, and in the calling thread.
double seconds_compiling();
double seconds_compiling_here();

/// Called before a module is compiled and after it was, by one thread at a time.
void on_compilation(std::function<void(const std::string& module, bool compiled)>);

/// -D options of a module: its formats.
std::vector<std::string> module_definitions(const std::string& module);

}  // namespace assay
