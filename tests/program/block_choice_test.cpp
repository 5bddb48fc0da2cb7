#include "src/base/program/block_choice.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using Numbers = std::vector<uint64_t>;

TEST(BlockChoice, ReadsNumbersRangesAndPlacesFromTheEnd) {
  EXPECT_EQ(chosen_blocks("0", 100), (Numbers{0}));
  EXPECT_EQ(chosen_blocks("last", 100), (Numbers{99}));
  EXPECT_EQ(chosen_blocks("5,last,0", 100), (Numbers{0, 5, 99}));
  EXPECT_EQ(chosen_blocks("2..4,last-1..last", 100), (Numbers{2, 3, 4, 98, 99}));
  EXPECT_EQ(chosen_blocks("last-3", uint64_t{1} << 40), (Numbers{(uint64_t{1} << 40) - 4}));
}

TEST(BlockChoice, LeavesOutWhatTheGridLacksAndNamesEachBlockOnce) {
  EXPECT_EQ(chosen_blocks("0..9", 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(chosen_blocks("last-7..last", 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(chosen_blocks("70000", 3), Numbers{});
  EXPECT_EQ(chosen_blocks("0,last,0..1", 1), (Numbers{0}));
}

TEST(BlockChoice, RefusesWhatIsNone) {
  for (const char* text :
       {"", "x", "1,", "3..1", "last..0", "-1", "1-2", "lastly", "0..2000000", "99999999999999999999"})
    EXPECT_THROW(chosen_blocks(text, uint64_t{1} << 40), BadInput) << text;
}

TEST(BlockChoice, WhatNoLaunchHasIsRefusedByName) {
  const auto refused = [](const std::string& text, const std::vector<uint64_t>& blocks) -> std::string {
    try {
      require_blocks(text, blocks);
    } catch (const BadInput& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refused("99", {2}), "blocks '99': no launch has one of them");
  EXPECT_EQ(refused("0", {}), "blocks '0': no launch has one of them");
  EXPECT_EQ(refused("0,99", {2, 7}), "blocks '0,99': no launch has 99; the last one of the largest is 6");
  EXPECT_EQ(refused("0,9..12", {2, 7}),
            "blocks '0,9..12': no launch has 9..12; the last one of the largest is 6");
  for (const char* text : {"0,99", "99", "0..200", "last-200..last", "last-200,last"})
    EXPECT_EQ(refused(text, {2, 100}), "") << text;
}

}  // namespace
}  // namespace assay
