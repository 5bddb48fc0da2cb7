#include "src/capsule/capsule_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/vm/machine.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace capsule_file_test {

class CapsuleFile : public testing::Test {
 protected:
  CapsuleFile() {
    std::filesystem::create_directory(folder / "in");
    std::filesystem::copy_file(ASSAY_SOURCE_DIR "/tests/data/row_norm.ptx", folder / "in/row_norm.ptx");
    std::filesystem::copy_file(ASSAY_SOURCE_DIR "/examples/launch/row_norm.json", folder / "in/launch.json");
  }
  const ScratchFolder folder;
};

TEST_F(CapsuleFile, HoldsTheProgramWithItsValues) {
  const LaunchFile file(folder / "in/launch.json", {});
  Capsule made = file.make({{"columns", 70}}, 9);
  made.recorded["scale"] = Tensor("scale", Dtype::fp32, {{"rows", 3}});
  write_capsule(file, made, folder / "c.capsule");
  const Capsule read = LaunchFile(folder / "c.capsule", {}).make({}, 1);  // no draw is left: any seed
  EXPECT_EQ(read.sizes.at("columns"), 70);
  EXPECT_EQ(read.inputs.at("x").data, made.inputs.at("x").data);
  EXPECT_EQ(read.recorded.size(), 1u);
  EXPECT_TRUE(read.drawn.empty());
  EXPECT_EQ(read.fixed, made.fixed);
  const Outcome once = vm::run(made.program, made.inputs, {}), again = vm::run(read.program, read.inputs, {});
  EXPECT_EQ(once.outputs.at("y").data, again.outputs.at("y").data);
}

TEST_F(CapsuleFile, IsTheSameBytesForTheSameProgram) {
  const LaunchFile file(folder / "in/launch.json", {});
  write_capsule(file, file.make({}, 1), folder / "a");
  write_capsule(file, file.make({}, 1), folder / "b");
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

TEST_F(CapsuleFile, PacksWhatAFolderNamesAndNothingElse) {
  std::ofstream(folder / "in/secret") << "text";
  pack_capsule(folder / "in", folder / "p.capsule");
  const ZipFiles files = parse_zip(read_file(folder / "p.capsule"), "p", "capsule");
  EXPECT_EQ(files.size(), 2u);
  EXPECT_EQ(LaunchFile(folder / "p.capsule", {}).make({}, 4).inputs.at("x").data,
            LaunchFile(folder / "in", {}).make({}, 4).inputs.at("x").data);
}

TEST_F(CapsuleFile, LargeValuesThatAreNotHeldGoIntoItAsHeldOnesDo) {
  std::ofstream(folder / "in/launch.json") << R"({"ptx": "row_norm.ptx",
    "tensors": {"x": {"shape": [17000000], "dtype": "fp32", "values": "uniform"},
                "y": {"shape": [1], "dtype": "fp32"}},
    "launches": [{"function": "row_norm", "grid": 1, "block": 1,
                  "arguments": [{"struct": ["x", "y", "y", {"i32": 1}, {"f32": 1}]}]}]})";
  const LaunchFile file(folder / "in", {});
  const Capsule left = file.make({}, 1, true);
  ASSERT_FALSE(left.inputs.at("x").is_held());
  write_capsule(file, left, folder / "left");
  write_capsule(file, file.make({}, 1), folder / "held");
  EXPECT_TRUE(read_file(folder / "left") == read_file(folder / "held"));
}

TEST_F(CapsuleFile, MoreThanCanBeReadBackIsRefusedBeforeAnythingIsRead) {
  std::ofstream(folder / "in/x.npy") << "not looked at";
  std::filesystem::resize_file(folder / "in/x.npy", uint64_t{17} << 30);  // a hole
  std::ofstream(folder / "in/launch.json") << R"({"tensors": {"x": {"values": {"npy": "x.npy"}}}})";
  try {
    pack_capsule(folder / "in", folder / "q.capsule");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("17.0 GiB do not go into one capsule"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "q.capsule"));
}

TEST_F(CapsuleFile, ACorruptOneIsOneLine) {
  const LaunchFile file(folder / "in/launch.json", {});
  write_capsule(file, file.make({{"columns", 3}}, 1), folder / "c");
  const std::string good = read_file(folder / "c");
  int refused = 0;
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    std::ofstream(folder / "bad", std::ios::binary) << bad;
    try {
      LaunchFile(folder / "bad", {}).make({}, 1);
    } catch (const BadInput& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size() / 7 * 9 / 10));
}

}  // namespace capsule_file_test
}  // namespace assay
