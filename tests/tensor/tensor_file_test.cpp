#include "src/base/tensor/tensor_file.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace tensor_file_test {

std::string message(const std::string& path) {
  try {
    read_tensors(path);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TensorFile, AFolderOfNpyFilesIsReadByName) {
  const ScratchFolder folder;
  write_npy(folder / "q.npy", Tensor("q", Dtype::fp32, {{"T", 3}}));
  write_npy(folder / "initial_state.npy", Tensor("initial_state", Dtype::fp32, {{"N", 1}}));
  write_file(folder / "notes.txt", "not a tensor");
  const TensorMap tensors = read_tensors(folder / "");
  EXPECT_EQ(tensors.size(), 2);
  EXPECT_TRUE(tensors.contains("initial_state"));
}

TEST(TensorFile, MissingAndEmptyPathsAreNamed) {
  const ScratchFolder folder;
  EXPECT_EQ(message(folder / "gone.safetensors"),
            (folder / "gone.safetensors") + ": cannot be opened: No such file or directory");
  EXPECT_NE(message(folder / "").find("a folder without .npy files"), std::string::npos);
  EXPECT_THROW(write_file(folder / "no/such/folder", "x"), BadInput);
}

}  // namespace tensor_file_test
}  // namespace assay
