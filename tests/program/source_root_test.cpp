#include "src/base/program/source_root.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

/// Two checkouts of one file.
class SourceRoot : public testing::Test {
 protected:
  void SetUp() override {
    for (const ScratchFolder* tree : {&one, &other}) {
      std::filesystem::create_directories(*tree / "src/kernels");
      write_file(*tree / "src/kernels/k.cu", "");
    }
    choose_source_root(one / "");
  }
  const ScratchFolder one, other;
};

TEST_F(SourceRoot, AFileBelowItIsCalledByItsPathFromThere) {
  EXPECT_EQ(source_name(one / "src/kernels/k.cu"), "src/kernels/k.cu");
  EXPECT_EQ(source_name(one / "src/x/../kernels/k.cu"), "src/kernels/k.cu");
  EXPECT_EQ(source_name("src/kernels/k.cu"), "src/kernels/k.cu");
}

TEST_F(SourceRoot, WhatWasCompiledElsewhereIsFoundByItsTail) {
  EXPECT_EQ(source_name("/builds/team/repo/src/kernels/k.cu"), "src/kernels/k.cu");
  EXPECT_EQ(source_name("/usr/local/cuda/include/cuda_bf16.hpp"), "/usr/local/cuda/include/cuda_bf16.hpp");
  EXPECT_EQ(source_name(other / "src/kernels/k.cu"), other / "src/kernels/k.cu") << "there: another file";
}

TEST_F(SourceRoot, RenamesFilesOfATextAndNothingElse) {
  const std::string path = one / "src/kernels/k.cu";
  EXPECT_EQ(
      with_source_names(".version 8.0\n\t.file\t1 \"" + path + "\", 17, 4\n// \"" + path + "\"\n.loc 1 2 3"),
      ".version 8.0\n\t.file\t1 \"src/kernels/k.cu\", 17, 4\n// \"" + path + "\"\n.loc 1 2 3");
  EXPECT_EQ(with_source_names(""), "");
  EXPECT_EQ(with_source_names(".file"), ".file");
}

TEST_F(SourceRoot, MustBeAFolder) {
  EXPECT_THROW(choose_source_root(one / "gone"), BadInput);
  EXPECT_THROW(choose_source_root(one / "src/kernels/k.cu"), BadInput);
}

}  // namespace
}  // namespace assay
