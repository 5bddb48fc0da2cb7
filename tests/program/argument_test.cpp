#include "src/base/program/argument.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace assay {
namespace {

const auto no_maps = [](const TileMap&, uint64_t, std::byte*) { FAIL() << "no tensor map is there"; };

TEST(Argument, BytesAreFilledWithAddresses) {
  const Argument argument = Argument::of_bytes(24)
                                .put(0, PointerArgument{"x", 8})
                                .put(8, PointerArgument{})
                                .put(16, 0.5f)
                                .put(20, -2);
  const auto bytes = filled(
      argument,
      [](const PointerArgument& to) {
        return 0x1000u * (to.buffer == "x") + static_cast<uint64_t>(to.offset);
      },
      no_maps);
  struct {
    uint64_t x, null;
    float a;
    int32_t n;
  } back;
  ASSERT_EQ(bytes.size(), sizeof back);
  std::memcpy(&back, bytes.data(), sizeof back);
  EXPECT_EQ(back.x, 0x1008u);
  EXPECT_EQ(back.null, 0u);
  EXPECT_EQ(back.a, 0.5f);
  EXPECT_EQ(back.n, -2);
}

TEST(Argument, TellsWhatItWasMadeOf) {
  EXPECT_EQ(integer_of(int8_t{-3}), -3);
  EXPECT_EQ(integer_of(int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(real_of(0.1f), 0.1f);
  EXPECT_EQ(real_of(0.1), 0.1);
  EXPECT_EQ(integer_of(0.1f), std::nullopt);
  EXPECT_EQ(integer_of(PointerArgument{"x"}), std::nullopt);
  EXPECT_EQ(pointer_of(PointerArgument{"x", 4})->offset, 4);
  EXPECT_TRUE(Argument(PointerArgument{}).is_null_pointer());
  EXPECT_EQ(pointer_of(int64_t{0}), std::nullopt);
  EXPECT_EQ(integer_of(Argument::of_bytes(4)), std::nullopt) << "nothing is known of it";
}

TEST(Argument, PointersAreRedirectedWhereverTheyStand) {
  Argument argument = Argument::of_bytes(16).put(0, PointerArgument{"x", 8}).put(8, PointerArgument{"y"});
  redirect(argument, {{"x", "z"}, {"y", ""}, {"z", "x"}});
  ASSERT_EQ(argument.relocations.size(), 1u) << "y became the null pointer";
  EXPECT_EQ(argument.relocations[0].to.buffer, "z");
  EXPECT_EQ(argument.relocations[0].to.offset, 8);
  EXPECT_TRUE(argument.refers_to("z"));
  EXPECT_FALSE(argument.refers_to("y"));
}

TEST(Argument, TensorMapsAreEncodedWhereTheyStand) {
  const TileMap map{.sizes = {7}};
  const Argument argument = Argument::of_bytes(192).put(64, PointerArgument{"x", 32}, map);
  const auto bytes = filled(
      argument, [](const PointerArgument& to) { return static_cast<uint64_t>(to.offset); },
      [](const TileMap& given, uint64_t address, std::byte* to) {
        to[0] = static_cast<std::byte>(given.sizes[0]), to[127] = static_cast<std::byte>(address);
      });
  EXPECT_EQ(bytes[64], std::byte{7});
  EXPECT_EQ(bytes[191], std::byte{32});
}

TEST(Argument, WritesNothingPastItsEnd) {
  EXPECT_THROW(Argument::of_bytes(8).put(4, int64_t{1}), std::out_of_range);
  EXPECT_THROW(Argument::of_bytes(8).put(1, PointerArgument{"x"}), std::out_of_range);
}

}  // namespace
}  // namespace assay
