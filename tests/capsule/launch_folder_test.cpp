#include "src/capsule/launch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/base/numerics/bad_input.h"
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
  write_zip(scratch / "c.capsule", {{"launch.json", "{}"}, {"x", "inside"}, {"../outside", "no"}});
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

}  // namespace launch_folder_test
}  // namespace assay
