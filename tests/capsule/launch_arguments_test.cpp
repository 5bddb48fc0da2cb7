#include "src/capsule/launch_arguments.h"

#include <gtest/gtest.h>

#include <cstring>

namespace assay {
namespace launch_arguments_test {

const std::string kPath = "l.json";

Argument argument(const nlohmann::json& text) {
  const ExpressionScope scope{{{"n", 100}}, {}};
  const std::map<std::string, Tensor> tensors{{"x", Tensor("x", Dtype::fp16, {{"n", 100}, {"K", 64}})}};
  return read_launch_argument(JsonNode(text, "/a", kPath), scope, tensors);
}
std::string complaint(const nlohmann::json& text) {
  try {
    argument(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing";
}
template <typename T>
T at(const Argument& a, size_t byte) {
  T value;
  std::memcpy(&value, a.bytes.data() + byte, sizeof value);
  return value;
}

TEST(LaunchArguments, ScalarsHaveTheBytesOfTheirTypes) {
  EXPECT_EQ(at<int32_t>(argument({{"i32", "n * 2"}}), 0), 200);
  EXPECT_EQ(at<uint32_t>(argument({{"i32", 4294967295}}), 0), 4294967295u);
  EXPECT_EQ(at<int64_t>(argument({{"i64", -1}}), 0), -1);
  EXPECT_EQ(at<float>(argument({{"f32", "1 / n"}}), 0), 0.01f);
  EXPECT_EQ(argument({{"f32", "1 / n"}}).rounded_from, 0.01);
  EXPECT_EQ(at<uint16_t>(argument({{"f16", 1}}), 0), 0x3c00);
  EXPECT_EQ(at<uint16_t>(argument({{"bf16", 1}}), 0), 0x3f80);
  EXPECT_EQ(argument({{"bytes", "01 ff"}}).bytes.size(), 2u);
}

TEST(LaunchArguments, StructsLieAsCLaysThemOut) {
  struct Inner {
    char flag;
    double weight;
  };
  struct Params {
    const void* x;
    char kind;
    int n;
    Inner inner;
    short last;
  };
  const Argument a = argument(
      {{"struct",
        {"x", {{"i8", 7}}, {{"i32", "n"}}, {{"struct", {{{"i8", 1}}, {{"f64", 0.5}}}}}, {{"i16", -3}}}}});
  ASSERT_EQ(a.bytes.size(), sizeof(Params));
  ASSERT_EQ(a.relocations.size(), 1u);
  EXPECT_EQ(a.relocations[0].at, offsetof(Params, x));
  EXPECT_EQ(at<char>(a, offsetof(Params, kind)), 7);
  EXPECT_EQ(at<int>(a, offsetof(Params, n)), 100);
  EXPECT_EQ(at<double>(a, offsetof(Params, inner) + offsetof(Inner, weight)), 0.5);
  EXPECT_EQ(at<short>(a, offsetof(Params, last)), -3);
}

TEST(LaunchArguments, PlacesAndSizesMayBeGiven) {
  const Argument a = argument({{"struct", {{{"i8", 1}}, {{"i32", 5}, {"at", 12}}}}, {"size", 40}});
  EXPECT_EQ(a.bytes.size(), 40u);
  EXPECT_EQ(at<int32_t>(a, 12), 5);
}

TEST(LaunchArguments, BytesThatNoMemberHoldsAreKnown) {
  const Argument a = argument(
      {{"struct", {"x", {{"i8", 7}}, {{"struct", {{{"i8", 1}}, {{"i32", 5}}}}, {"at", 16}}, {{"i32", 1}}}},
       {"size", 40}});
  EXPECT_EQ(a.uncovered, (std::vector<ByteRange>{{9, 16}, {17, 20}, {28, 40}}));
  EXPECT_TRUE(argument({{"struct", {"x", {{"i64", 7}}}}}).uncovered.empty());
  EXPECT_TRUE(argument({{"bytes", "00 00 00"}}).uncovered.empty());
}

TEST(LaunchArguments, TensorMapsHaveTheInnermostAxisFirst) {
  const Argument a = argument({{"tensor_map", "x"}, {"box", {16, 64}}, {"swizzle", 128}});
  ASSERT_EQ(a.relocations.size(), 1u);
  const TileMap& map = a.relocations[0].tile_map.value();
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{64, 100}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{128}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{64, 16}));
  EXPECT_EQ(map.swizzle, TileMap::Swizzle::of_128_bytes);
  EXPECT_EQ(map.element, TileMap::Element::f16);
}

TEST(LaunchArguments, TensorMapsMayHaveAxesOfTheirOwn) {
  const Argument a = argument({{"tensor_map", "x"},
                               {"element", "u16"},
                               {"shape", {2, 8, 64}},
                               {"strides", {1024, 64}},
                               {"offset", 256},
                               {"box", {1, 8, 64}}});
  const Relocation& to = a.relocations.at(0);
  EXPECT_EQ(to.to.offset, 256);
  EXPECT_EQ(to.tile_map->element, TileMap::Element::u16);
  EXPECT_EQ(to.tile_map->sizes, (std::vector<uint64_t>{64, 8, 2}));
  EXPECT_EQ(to.tile_map->strides, (std::vector<uint64_t>{128, 2048}));
  EXPECT_EQ(to.tile_map->box, (std::vector<uint32_t>{64, 8, 1}));
  EXPECT_NE(complaint({{"tensor_map", "x"}, {"shape", {8, 64}}, {"strides", {64, 1}}, {"box", {8, 64}}})
                .find("2 strides for 2 axes: one of each but the last"),
            std::string::npos);
  EXPECT_NE(complaint({{"tensor_map", "x"}, {"element", "half"}, {"box", {8, 64}}}).find("there are u8, u16"),
            std::string::npos);
}

TEST(LaunchArguments, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(complaint("z"), "l.json at /a: there is no tensor \"z\"; there are: x");
  EXPECT_NE(complaint({{"i32", 4294967296}}).find("l.json at /a/i32"), std::string::npos);
  EXPECT_NE(complaint({{"i32", "m"}}).find("l.json at /a/i32"), std::string::npos);
  EXPECT_NE(complaint({{"int", 3}}).find("an argument is a tensor's name"), std::string::npos);
  EXPECT_NE(
      complaint({{"struct", {{{"i64", 1}}, {{"i32", 5}, {"at", 4}}}}}).find("inside the member before it"),
      std::string::npos);
  EXPECT_NE(complaint({{"struct", {{{"i64", 1}}}}, {"size", 4}}).find("take 8 bytes"), std::string::npos);
  EXPECT_NE(complaint({{"bytes", "0"}}).find("hexadecimal"), std::string::npos);
}

}  // namespace launch_arguments_test
}  // namespace assay
