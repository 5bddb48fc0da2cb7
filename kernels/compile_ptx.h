// Compiles kernel sources to PTX while the program runs, with the flags of the build.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// Path from the source root ("kernels/gla/chunk.cu") and text.
using SourceTree = std::vector<std::pair<std::string, std::string>>;

/// There is no compiler, it refuses, or its result cannot be kept: nothing that another case would mend, so no
/// BadInput, which a search takes for a case that the kernel refuses.
struct CannotCompile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "kernels/gla/chunk.cu" of "gla/chunk.bf16.fp32".
std::string source_path(const std::string& module);

/// Those of the files that one of them is made of: itself and, transitively, what it includes.
SourceTree with_includes(const SourceTree&, const std::string& path);

/// The module ("gla/chunk.bf16.fp32") compiled from these sources; cached in memory and on disk by content.
/// Throws CannotCompile where there is no nvcc or where it refuses (its first error line).
std::shared_ptr<const std::string> compile_module(const SourceTree&, const std::string& module);

/// Seconds that compile_module has spent compiling so far, over all threads.
double seconds_compiling();

/// -D options of a module: formats, and which widths of block it holds. kernels/CMakeLists.txt says the same.
std::vector<std::string> module_definitions(const std::string& module);

}  // namespace assay
