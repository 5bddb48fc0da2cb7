#include "kernels/compile_ptx.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/module_text.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

class CompilePtx : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ASSAY_CACHE", (testing::TempDir() + "assay-compile-cache").c_str(), 1);
    for (const SourceFile& file : embedded_sources()) sources.emplace_back(file.path, file.text);
  }
  void TearDown() override { unsetenv("ASSAY_CACHE"); }
  SourceTree sources;
};

TEST_F(CompilePtx, GivesTheTextOfTheBuildFromTheSameSources) {
  for (const char* mode : {"chunk", "fused_recurrent"}) {
    const Module built = gla_module(mode, Dtype::fp16, Dtype::bf16);
    EXPECT_TRUE(*compile_module(sources, built.name) == *built.ptx) << built.name;
  }
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
  setenv("ASSAY_NVCC", "/nowhere/nvcc", 1);
  for (auto& [path, text] : sources)
    if (path == "kernels/device/decay.cuh") text += "\n// not in the cache\n";
  EXPECT_THROW(compile_module(sources, "gla/chunk.bf16.bf16"), CannotCompile);
  unsetenv("ASSAY_NVCC");
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
