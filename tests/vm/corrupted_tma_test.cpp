// Corrupted programs of the copy engine are refused, trap or give some result: never a crash.
//   ASSAY_CORRUPTED=FIRST,COUNT runs those of these numbers; ASSAY_TEST_SCALE=25 runs 5,000.
#include "tests/vm/corrupted_tma.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

namespace assay::hopper {
namespace {

std::vector<uint8_t> bytes_of(uint64_t number) {
  std::mt19937_64 random(number);
  std::vector<uint8_t> bytes(48);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(CorruptedTma, IsRefusedTrapsOrEnds) {
  uint64_t first = 0, count = 200;
  if (const char* scale = std::getenv("ASSAY_TEST_SCALE"); scale && std::atoi(scale) > 1)
    count *= static_cast<uint64_t>(std::atoi(scale));
  if (const char* some = std::getenv("ASSAY_CORRUPTED")) std::sscanf(some, "%lu,%lu", &first, &count);
  std::map<std::string, int> fates;
  for (uint64_t number = first; number < first + count; ++number) {
    if (std::getenv("ASSAY_CORRUPTED_SHOW")) std::fprintf(stderr, "%lu\n", number);
    EXPECT_NO_THROW({
      const Fate fate = fate_of_corrupted(bytes_of(number));
      ++fates[fate.plain == fate.checked ? fate.plain : fate.plain + ", under checks " + fate.checked];
    }) << "ASSAY_CORRUPTED="
       << number << ",1";
  }
  for (const auto& [fate, times] : fates) std::fprintf(stderr, "%6d %s\n", times, fate.c_str());
  if (count < 200) return;
  for (const char* fate : {"refused", "ended", "out-of-bounds", "barrier"}) EXPECT_GT(fates[fate], 0) << fate;
}

}  // namespace
}  // namespace assay::hopper
