#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/section.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay::sections {
extern const Section timing;
}  // namespace assay::sections

namespace assay {
namespace timing_section_test {

std::string note_of(const Verification& v) {
  return test::printed([&](const Console& console) { sections::timing.note(console, v); });
}

Verification sample() {
  Verification v = verification_from_json(test::passed_verification());
  v.seconds_kernel = 0.25, v.seconds_reference = 1.5, v.lane_instructions = 0;
  for (OutputComparison& o : v.outputs) o.max_enclosure = 0;
  return v;
}

TEST(TimingSection, SaysHowLongKernelAndReferenceTook) {
  Verification v = sample();
  EXPECT_EQ(note_of(v), "kernel 0.250 s, reference 1.500 s\n");
  v.lane_instructions = 12'340'000;
  EXPECT_EQ(note_of(v), "kernel 0.250 s (12.3 million lane instructions), reference 1.500 s\n");
}

TEST(TimingSection, TheWidestEnclosureIsRoundedUpToAPowerOfTwo) {
  Verification v = sample();
  ASSERT_FALSE(v.outputs.empty());
  v.outputs.front().max_enclosure = 0x1.8p-10;
  v.outputs.push_back(v.outputs.front());
  v.outputs.back().max_enclosure = 0x1p-12;
  EXPECT_EQ(note_of(v), "kernel 0.250 s, reference 1.500 s (its enclosures are at most 2^-9 of the bound)\n");
}

TEST(TimingSection, AProgramWithoutAnOperatorHasNoReference) {
  Verification v = sample();
  v.program.emplace();
  EXPECT_EQ(note_of(v), "kernel 0.250 s\n");
}

}  // namespace timing_section_test
}  // namespace assay
