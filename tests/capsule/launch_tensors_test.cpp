#include "src/capsule/launch_tensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "src/base/tensor/npy.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace launch_tensors_test {

const std::string kPath = "l.json";
const ExpressionScope kScope{{{"n", 10}, {"K", 4}}, {}};

LaunchTensor tensor(const nlohmann::json& text, uint64_t seed = 1, const ScratchFolder& folder = {},
                    bool large_stay = false) {
  std::ofstream(folder / "l.json") << "{}";
  return read_launch_tensor("x", JsonNode(text, "/tensors/x", kPath), kScope, LaunchFolder(folder / "l.json"),
                            seed, large_stay);
}
std::string complaint(const nlohmann::json& text) {
  try {
    tensor(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing";
}

TEST(LaunchTensors, AxesHaveTheNamesOfTheirSizes) {
  const LaunchTensor t = tensor({{"dtype", "float32"}, {"shape", {"n", "K + 1", "n"}}});
  EXPECT_EQ(t.tensor.shape_text(), "[n=10,i1=5,n'=10]");
  EXPECT_FALSE(t.holds);
  EXPECT_EQ(t.use, LaunchTensor::Use::out);
}

TEST(LaunchTensors, ValuesAreThoseAskedFor) {
  const auto values = [](const nlohmann::json& v, const char* dtype = "fp64") {
    return tensor({{"dtype", dtype}, {"shape", {"n"}}, {"values", v}}).tensor;
  };
  for (int64_t i = 0; i < 10; ++i) {
    const auto x = static_cast<double>(i);
    EXPECT_EQ(values("range").value(i), x);
    EXPECT_EQ(values({{"range", {5, -2}}}).value(i), 5 - 2 * x);
    EXPECT_EQ(values({{"fill", "K"}}).value(i), 4);
    EXPECT_EQ(values("zeros").value(i), 0);
    const double whole = values({{"integers", {3, "K"}}}, "i32").value(i);
    EXPECT_TRUE(whole == 3 || whole == 4) << whole;
    const double between = values({{"uniform", {2, 3}}}).value(i);
    EXPECT_TRUE(between >= 2 && between <= 3) << between;
    EXPECT_GT(values({{"normal", {1000, 1}}}).value(i), 900);
  }
  std::set<double> places;
  for (int64_t i = 0; i < 10; ++i) places.insert(values("permutation", "i64").value(i));
  EXPECT_EQ(places.size(), 10u);
  EXPECT_EQ(*places.rbegin(), 9);
  EXPECT_EQ(values({1, 2, 3, 4, 5, 6, 7, 8, 9, "n"}).value(9), 10);
}

TEST(LaunchTensors, RandomOnesDependOnTheSeedAlone) {
  const nlohmann::json text{{"dtype", "bf16"}, {"shape", {"n"}}, {"values", "normal"}};
  EXPECT_EQ(tensor(text, 1).tensor.data, tensor(text, 1).tensor.data);
  EXPECT_NE(tensor(text, 1).tensor.data, tensor(text, 2).tensor.data);
}

TEST(LaunchTensors, FilesBringShapeAndTypeAlong) {
  const ScratchFolder folder;
  Tensor stored("stored", Dtype::fp16, {{"", 2}, {"", 5}});
  stored.set(7, 3);
  write_npy(folder / "stored.npy", stored);
  const Tensor read = tensor({{"values", {{"npy", "stored.npy"}}}}, 1, folder).tensor;
  EXPECT_EQ(read.shape_text(), "[i0=2,i1=5]");
  EXPECT_EQ(read.dtype, Dtype::fp16);
  EXPECT_EQ(read.value(7), 3);
  const auto shaped = tensor({{"values", {{"npy", "stored.npy"}}}, {"shape", {"n"}}}, 1, folder).tensor;
  EXPECT_EQ(shaped.shape_text(), "[n=10]");
}

TEST(LaunchTensors, LargeOnesStayInTheirFileWhereOnlySomeBlocksRun) {
  const ScratchFolder folder;
  constexpr int64_t kElements = kLargestHeld + 64;
  std::string file("\x93NUMPY\x01\x00", 8);
  std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", kElements);
  header.resize(117, ' ');
  file += std::string("v\0", 2) + header + "\n";
  std::ofstream(folder / "large.npy", std::ios::binary) << file;
  std::filesystem::resize_file(folder / "large.npy", file.size() + kElements);  // with a hole
  std::fstream(folder / "large.npy", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put(7);
  const nlohmann::json text{{"values", {{"npy", "large.npy"}}}};
  for (const bool large_stay : {false, true}) {
    const Tensor read = tensor(text, 1, folder, large_stay).tensor;
    EXPECT_EQ(read.is_held(), !large_stay);
    EXPECT_EQ(read.value(kElements - 1), 7);
  }
}

TEST(LaunchTensors, WhatIsWrongIsSaidWithItsPlace) {
  const std::pair<nlohmann::json, const char*> rows[] = {
      {{{"dtype", "fp33"}, {"shape", {1}}}, "/tensors/x/dtype: \"fp33\" is no type of elements"},
      {{{"dtype", "fp32"}}, "key \"shape\" is missing"},
      {{{"dtype", "fp32"}, {"shape", {"m"}}}, "/tensors/x/shape/0"},
      {{{"dtype", "fp32"}, {"shape", {-1}}}, "/tensors/x/shape/0"},
      {{{"dtype", "fp32"}, {"shape", {"2^20", "2^20"}}}, "at most"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"values", {1, 2}}}, "2 values for 3 elements"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"values", "gaussian"}}, "\"gaussian\" are no values"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"values", {{"integers", {0.2, 0.8}}}}},
       "no whole number lies between"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"values", {{"uniform", {3, 2}}}}},
       "/tensors/x/values/uniform: 3 to 2 is empty"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"use", "in"}}, "no \"values\" that it could bring in"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"values", "ones"}, {"use", "workspace"}}, "a workspace has no"},
      {{{"dtype", "fp32"}, {"shape", {2, 3}}, {"values", "ones"}, {"strides", {2, 1}}}, "/tensors/x/strides"},
      {{{"dtype", "fp32"}, {"shape", {2, 3}}, {"strides", {4, 1}}}, "only what the run reads is a view"},
      {{{"dtype", "fp32"}, {"shape", {3}}, {"type", 1}}, "unknown key \"type\""},
  };
  for (const auto& [text, message] : rows)
    EXPECT_NE(complaint(text).find(message), std::string::npos) << complaint(text);
}

}  // namespace launch_tensors_test
}  // namespace assay
