#include "kernels/compile_ptx.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "kernels/module_text.h"
#include "src/base/numerics/bad_input.h"
#include "tests/tensor/scoped_environment.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

class CompilePtx : public testing::Test {
 protected:
  void SetUp() override {
    for (const SourceFile& file : embedded_sources()) sources.emplace_back(file.path, file.text);
  }
  SourceTree sources;

 private:
  const ScopedEnvironment cache_{"ASSAY_CACHE", testing::TempDir() + "assay-compile-cache"};
};

TEST_F(CompilePtx, GivesTheTextOfOurKernelsWhereverItIsCompiled) {
  const Module ours = gla_module("fused_recurrent", Dtype::fp16, Dtype::bf16);
  for (auto& [path, text] : sources) text += "\n// another key: compiled once more, in another folder\n";
  const auto again = compile_module(sources, ours.name);
  EXPECT_NE(again, ours.ptx);
  EXPECT_TRUE(*again == *ours.ptx);
}

TEST_F(CompilePtx, CompilesOnceForThreadsThatAskAtOnce) {
  for (auto& [path, text] : sources) text += fmt::format("\n// {}\n", getpid());
  std::atomic<int> compiled = 0;
  on_compilation([&](const std::string&, bool done) { compiled += done; });
  std::vector<std::shared_ptr<const std::string>> texts(4);
  std::vector<std::thread> threads;
  for (auto& text : texts) threads.emplace_back([&] { text = compile_module(sources, "views/gather"); });
  for (std::thread& thread : threads) thread.join();
  on_compilation(nullptr);
  EXPECT_EQ(compiled, 1);
  for (const auto& text : texts) EXPECT_EQ(text, texts[0]);
}

/// By a process of its own: this one remembers what it compiled.
std::string compiled_apart(const std::filesystem::path& cache, const std::string& module) {
  const std::filesystem::path output = cache.string() + ".ptx";
  const int status = std::system(fmt::format("ASSAY_CACHE='{}' '{}' '{}' {} '{}'", cache.string(),
                                             ASSAY_COMPILE_MODULE, ASSAY_SOURCE_DIR, output.string(), module)
                                     .c_str());
  EXPECT_EQ(status, 0);
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  std::filesystem::remove(output);
  return text.str();
}

/// Each asks a compiler that notes that it was asked, and takes a second.
TEST_F(CompilePtx, CompilesOnceForProcessesThatAskAtOnce) {
  const ScratchFolder folder;
  const std::filesystem::path compiler = folder / "nvcc", asked = folder / "asked";
  std::ofstream(compiler) << "#!/bin/sh\n[ \"$1\" = --version ] && echo Build x && exit\necho x >>"
                          << asked.string() << "\nsleep 1\nwhile [ \"$1\" != -o ]; do shift; done\n"
                          << "echo '.version 8.0\n.target sm_80\n.address_size 64' >\"$2\"\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const auto run = [&](int n) {
    return fmt::format("ASSAY_NVCC='{}' ASSAY_CACHE='{}' '{}' '{}' '{}' views/gather", compiler.string(),
                       folder / "cache", ASSAY_COMPILE_MODULE, ASSAY_SOURCE_DIR,
                       folder / fmt::format("text{}", n));
  };
  const std::string all =
      fmt::format("{} & first=$!; {} & second=$!; wait $first && wait $second", run(1), run(2));
  EXPECT_EQ(std::system(all.c_str()), 0);
  EXPECT_EQ(std::filesystem::file_size(asked), 2u);
  for (const auto& file : std::filesystem::directory_iterator(folder / "cache"))
    EXPECT_NE(file.path().extension(), ".lock") << file.path();
}

TEST_F(CompilePtx, CompilesAnewWhatWasNotKeptWhole) {
  const std::filesystem::path cache = testing::TempDir() + fmt::format("assay-broken-cache.{}", getpid());
  const std::string module = "views/gather", whole = compiled_apart(cache, module);
  std::filesystem::path kept;
  for (const auto& file : std::filesystem::directory_iterator(cache))
    if (file.path().extension() == ".z") kept = file.path();
  std::filesystem::resize_file(kept, std::filesystem::file_size(kept) / 2);
  EXPECT_TRUE(compiled_apart(cache, module) == whole);
  EXPECT_FALSE(whole.empty());
  std::filesystem::remove_all(cache);
}

TEST_F(CompilePtx, AsksACompilerForItsVersionOnceAndAnotherOneAgain) {
  const std::filesystem::path folder = testing::TempDir() + fmt::format("assay-version.{}", getpid());
  const std::filesystem::path compiler = folder / "nvcc", asked = folder / "asked";
  std::filesystem::create_directories(folder);
  std::ofstream(compiler) << "#!/bin/sh\n[ \"$1\" = --version ] || exit 1\necho Build x\necho x >>"
                          << asked.string() << '\n';
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const std::string run =
      fmt::format("ASSAY_NVCC='{}' ASSAY_CACHE='{}' '{}' '{}' /dev/null views/gather 2>/dev/null",
                  compiler.string(), (folder / "cache").string(), ASSAY_COMPILE_MODULE, ASSAY_SOURCE_DIR);
  const auto times_asked = [&] {
    EXPECT_NE(std::system(run.c_str()), 0);  // it compiles nothing
    return std::filesystem::file_size(asked) / 2;
  };
  EXPECT_EQ(times_asked(), 1u);
  EXPECT_EQ(times_asked(), 1u);
  std::ofstream(compiler, std::ios::app) << "# an update\n";
  EXPECT_EQ(times_asked(), 2u);
  std::filesystem::remove_all(folder);
}

TEST_F(CompilePtx, SaysWhereTheCompilerRefuses) {
  for (auto& [path, text] : sources)
    if (path == "kernels/device/decay.cuh") text += "\nnot C++;\n";
  try {
    compile_module(sources, "gla/chunk.bf16.bf16");
    FAIL() << "compiled";
  } catch (const CannotCompile& error) {
    EXPECT_NE(std::string(error.what()).find("decay.cuh"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST_F(CompilePtx, SaysWhatToDoWhereThereIsNoCompiler) {
  const ScopedEnvironment none("ASSAY_NVCC", "/nowhere/nvcc");
  for (auto& [path, text] : sources)
    if (path == "kernels/device/decay.cuh") text += "\n// not in the cache\n";
  EXPECT_THROW(compile_module(sources, "gla/chunk.bf16.bf16"), CannotCompile);
}

volatile std::sig_atomic_t heard = 0;

TEST_F(CompilePtx, HearsASignalWhileTheCompilerRuns) {
  const std::string compiler = testing::TempDir() + "assay-signalling-compiler";
  std::ofstream(compiler) << "#!/bin/sh\n[ \"$1\" = --version ] || kill -INT " << getpid() << "\nexit 1\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const ScopedEnvironment signalling("ASSAY_NVCC", compiler);
  for (auto& [path, text] : sources) text += fmt::format("\n// signal {}\n", getpid());
  const auto before = std::signal(SIGINT, [](int) { heard = 1; });
  EXPECT_THROW(compile_module(sources, "views/gather"), CannotCompile);
  std::signal(SIGINT, before);
  std::filesystem::remove(compiler);
  EXPECT_EQ(heard, 1);
}

/// The lines of PTX that are neither of the line table nor names in it.
std::string instructions(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (line.find(".file") == line.npos && line.find(".loc\t") == line.npos && !line.starts_with(".b8") &&
        !line.starts_with("$L__info"))
      kept += line + '\n';
  return kept;
}

/// Uses every word that stands in device/cuda_instruction.cuh.
constexpr const char* every_word = R"(
extern "C" __global__ void __launch_bounds__(64) f(float4* x, long long* n, unsigned int* u, int bound) {
  __shared__ __align__(16) float shared[64];
  const int lane = threadIdx.x % 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 pair = make_float2(__uint_as_float(u[i]), __int_as_float(bound));
  shared[lane] = __fmaf_rn(pair.x, pair.y, __frcp_rn(x[i].x)) + __fsqrt_rn(fabsf(x[i].y));
  __syncwarp();
  const unsigned int all = 0xffffffffu;
  const float other = __shfl_xor_sync(all, shared[31 - lane], 4) + __shfl_sync(all, pair.x, 3);
  const int whole = __shfl_sync(all, min(lane, bound), 2) + __shfl_xor_sync(all, max(i, bound), 8);
  __syncthreads();
  n[i] = min(n[i + 1], (long long)__clz(whole)) + (long long)__cvta_generic_to_shared(&shared[lane]);
  u[i] = __shfl_sync(all, u[i + 1], 1) + __shfl_xor_sync(all, u[i + 2], 2);
  *(uint4*)&x[i + 1] = make_uint4(lane, i, bound, whole);
  x[i] = make_float4(copysignf(other, x[i].z), fmaxf(other, x[i].w), __float_as_int(other), gridDim.x);
}
)";

TEST_F(CompilePtx, GivesTheInstructionsThatCudasOwnHeaderGives) {
  SourceTree tree = {{"kernels/a/x.cu", every_word}};
  const auto with_header = compile_module(tree, "a/x");
  for (const SourceFile& file : embedded_sources())
    if (file.path.ends_with("/cuda_instruction.cuh")) tree.emplace_back(file.path, file.text);
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(instructions(*compile_module(tree, "a/x")), instructions(*with_header));
  tree[0].second = "#ifdef __CUDA_RUNTIME_API_H__\n#error is there\n#endif\n";
  EXPECT_NO_THROW(compile_module(tree, "a/x")) << "the header was not left out";
}

TEST_F(CompilePtx, CompilesASourceThatUsesMoreOfCudaWithAllOfItsHeader) {
  for (const std::string use : {"__popc(u[0])", "max(u[0], u[1])", "__shfl_xor_sync(~0u, u64[0], 1)"}) {
    SourceTree tree = sources;
    const std::string text =
        "extern \"C\" __global__ void f(unsigned int* u, unsigned long long* u64) { u64[2] = " + use +
        "; }\n";
    tree.emplace_back("kernels/a/x.cu", text);
    EXPECT_EQ(instructions(*compile_module(tree, "a/x")),
              instructions(*compile_module({{"kernels/a/x.cu", text}}, "a/x")))
        << use;
  }
}

TEST_F(CompilePtx, TakesASourceWithAllThatItIncludesAndNothingElse) {
  const SourceTree tree = {{"kernels/a/x.cu", "#include \"../b/y.cuh\"\n// #include \"no.cuh\"\n"},
                           {"kernels/a/no.cuh", ""},
                           {"kernels/b/y.cuh", "#include \"z.cuh\"\n#include <cmath>\n"},
                           {"kernels/b/z.cuh", "#include \"y.cuh\"\n"}};
  EXPECT_EQ(with_includes(tree, "kernels/a/x.cu"), (SourceTree{tree[0], tree[2], tree[3]}));
  EXPECT_EQ(source_path("a/x.bf16.fp32"), "kernels/a/x.cu");
}

}  // namespace
}  // namespace assay
