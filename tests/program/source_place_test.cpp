#include "src/base/program/source_place.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

SourceLocation at(const std::string& file, int line, const std::vector<std::string>& frames) {
  return {file, line, 17, "k", frames};
}

TEST(SourcePlace, NamesTheKernelsOwnCallBeforeALineOfASharedHelper) {
  const std::vector<std::string> frames{"kernels/device/format.cuh:94", "kernels/gla/keys.cuh:50",
                                        "kernels/gla/chunk.cu:106"};
  EXPECT_EQ(source_place(at("kernels/device/format.cuh", 94, frames)),
            "kernels/gla/keys.cuh:50, in kernels/device/format.cuh:94");
}

TEST(SourcePlace, IsTheLineAloneWhereItIsTheKernelsOwnOrNothingIsKnownOfCalls) {
  EXPECT_EQ(
      source_place(at("kernels/gla/keys.cuh", 50, {"kernels/gla/keys.cuh:50", "kernels/gla/chunk.cu:106"})),
      "kernels/gla/keys.cuh:50");
  EXPECT_EQ(source_place(at("kernels/gla/chunk.cu", 7, {})), "kernels/gla/chunk.cu:7");
  EXPECT_EQ(source_place(at("k.cu", 7, {"helper.cuh:2", "k.cu:7"})), "k.cu:7")
      << "a caller, not the helper inside";
}

TEST(SourcePlace, NamesTheCallOfALineOfTheToolkitWhichIsNoFrame) {
  EXPECT_EQ(source_place(at("/cuda/include/cuda_bf16.hpp", 112, {"k/k.cu:134"})),
            "k/k.cu:134, in /cuda/include/cuda_bf16.hpp:112");
}

TEST(SourcePlace, IsThePtxLineWithoutSources) {
  EXPECT_EQ(source_place(at("", 0, {})), "k, PTX line 17");
  EXPECT_EQ(source_place(at("a.ptx", 0, {})), "a.ptx, PTX line 17");
  EXPECT_EQ(source_place({"", 0, 0, "k", {}}), "k");
  EXPECT_EQ(place_with_ptx_line(at("", 0, {})), "k (PTX line 17)");
  EXPECT_EQ(place_with_ptx_line(at("k.cu", 7, {})), "k.cu:7 (PTX line 17)");
}

TEST(SourcePlace, AKeyIsTheLineWhateverCalledIt) {
  EXPECT_EQ(place_key(at("helper.cuh", 2, {"helper.cuh:2", "k.cu:7"})), "helper.cuh:2");
  EXPECT_EQ(place_key(at("/cuda/include/crt/mma.hpp", 163, {"k/k.cu:46", "k/k.cu:80"})), "k/k.cu:46")
      << "of the toolkit's the call";
  EXPECT_EQ(place_key(at("a.ptx", 0, {})), "a.ptx:ptx:17");
  EXPECT_EQ(place_key(at("", 0, {})), "k:ptx:17");
}

}  // namespace
}  // namespace assay
