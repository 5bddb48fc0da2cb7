#include "src/capsule/launch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/safetensors.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/zip_writer.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace launch_folder_test {

std::string complaint(const LaunchFolder& folder, const std::string& name) {
  try {
    folder.read(name);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing";
}

TEST(LaunchFolder, ALaunchFileMayNameFilesAnywhere) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "in");
  std::ofstream(scratch / "outside") << "text";
  std::ofstream(scratch / "in/l.json") << "{}";
  const LaunchFolder folder(scratch / "in/l.json");
  EXPECT_EQ(folder.document(), "{}");
  EXPECT_EQ(folder.read("../outside"), "text");
}

TEST(LaunchFolder, NothingLeavesAFolderOrACapsule) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "in");
  std::ofstream(scratch / "outside") << "text";
  std::ofstream(scratch / "in/launch.json") << "{}";
  std::ofstream(scratch / "in/x") << "inside";
  write_zip(scratch / "c.capsule", ZipFiles{{"launch.json", "{}"}, {"x", "inside"}, {"../outside", "no"}});
  for (const char* path : {"in", "c.capsule"}) {
    const LaunchFolder folder(scratch / path);
    EXPECT_EQ(folder.document(), "{}");
    EXPECT_EQ(folder.read("x"), "inside");
    for (const std::string& name :
         {std::string("../outside"), scratch / "outside", std::string("x/../../outside")})
      EXPECT_NE(complaint(folder, name).find("outside of it"), std::string::npos) << complaint(folder, name);
    EXPECT_NE(complaint(folder, "absent"), "nothing");
  }
}

TEST(LaunchFolder, LargeTensorsStayInTheirFileWhereAskedFor) {
  const ScratchFolder scratch;
  Tensor x("x", Dtype::i32, {{"", kLargestHeld / 4 + 3}}), small("y", Dtype::fp32, {{"", 5}});
  for (int64_t i = 0; i < x.size(); i += 1021) x.set_bits(i, static_cast<uint64_t>(i));
  std::filesystem::create_directory(scratch / "in");
  std::ofstream(scratch / "in/launch.json") << "{}";
  const std::string bytes = safetensors_bytes({{"x", x}, {"y", small}});
  write_file(scratch / "in/t.safetensors", bytes);
  write_zip(scratch / "c.capsule", ZipFiles{{"launch.json", "{}"}, {"t.safetensors", bytes}});
  for (const char* path : {"in", "c.capsule"}) {
    const LaunchFolder folder(scratch / path);
    const TensorMap held = folder.read_tensors("t.safetensors"),
                    left = folder.read_tensors("t.safetensors", true);
    EXPECT_EQ(held.at("x").data, x.data) << path;
    EXPECT_FALSE(left.at("x").is_held()) << path;
    EXPECT_TRUE(left.at("y").is_held()) << path;
    for (int64_t i = 0; i < x.size(); i += 1021) ASSERT_EQ(left.at("x").bits(i), static_cast<uint64_t>(i));
    EXPECT_EQ(left.at("x").bits(x.size() - 1), x.bits(x.size() - 1));
  }
  std::fstream(scratch / "c.capsule", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(kLargestHeld / 2)
      .put('x');
  EXPECT_THROW(LaunchFolder{scratch / "c.capsule"}, BadInput);
}

}  // namespace launch_folder_test
}  // namespace assay
