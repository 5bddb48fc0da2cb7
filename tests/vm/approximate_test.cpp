#include "src/vm/approximate.h"

#include <gtest/gtest.h>

#include "src/numerics/bad_input.h"
#include "tests/vm/recorded_file.h"
#include "tools/recorded_inputs.h"

namespace assay::vm {
namespace {

using Function = uint32_t (*)(uint32_t);

struct RecordedBinade {
  const char* name;
  Function function;
  uint32_t first, count;
  uint64_t digest;  // of the recorded results: 2^x, 1/x, ... rounded from 64-bit significands, plus the
                    // recorded difference
};

TEST(Approximate, EveryInputOfTheRecordedBinadesGivesTheRecordedBits) {
  const RecordedBinade binades[] = {
      {"ex2", ex2_approx_ftz_f32, 0x3f800000, 1u << 23, 0x3f0f3852f2fa7edbull},
      {"rcp", rcp_approx_ftz_f32, 0x3f800000, 1u << 23, 0xfa72a6c698274964ull},
      {"rsqrt", rsqrt_approx_ftz_f32, 0x3f800000, 1u << 24, 0xbdf1cb386ee78bc2ull},
      {"lg2", lg2_approx_ftz_f32, 0x40000000, 1u << 23, 0x68a8fcc691e51fd5ull}};
  for (const RecordedBinade& b : binades) {
    uint64_t h = recorded::digest(nullptr, 0);
    for (uint32_t i = 0; i < b.count; i++) {
      const uint32_t y = b.function(b.first + i);
      h = recorded::digest(&y, 1, h);
    }
    EXPECT_EQ(h, b.digest) << b.name << ".approx.ftz.f32 over its recorded inputs";
  }
}

TEST(Approximate, SamplesOverAllExponentsGiveTheRecordedBits) {
  constexpr int kCount = 32768;
  const std::vector<uint32_t> x = recorded::draw_arguments(kCount);
  const std::vector<uint32_t> words = read_words("approximate_sm90.bin.gz");
  ASSERT_EQ(words.size(), 3u + 10u * kCount);
  ASSERT_EQ(recorded::digest(x.data(), x.size()), words[0] | static_cast<uint64_t>(words[1]) << 32)
      << "tools/recorded_inputs.h no longer draws the inputs that were recorded";
  const std::pair<const char*, Function> forms[] = {
      {"ex2.approx.ftz.f32", ex2_approx_ftz_f32},     {"ex2.approx.f32", ex2_approx_f32},
      {"rcp.approx.ftz.f32", rcp_approx_ftz_f32},     {"rcp.approx.f32", rcp_approx_f32},
      {"rsqrt.approx.ftz.f32", rsqrt_approx_ftz_f32}, {"rsqrt.approx.f32", rsqrt_approx_f32}};
  for (size_t form = 0; form < std::size(forms); form++) {
    int mismatches = 0;
    for (int i = 0; i < kCount; i++) {
      const uint32_t got = forms[form].second(x[i]), expected = words[3 + form * kCount + i];
      if (got == expected) continue;
      if (mismatches++ < 3)
        ADD_FAILURE() << forms[form].first << std::hex << " of 0x" << x[i] << ": 0x" << got << ", recorded 0x"
                      << expected;
    }
    EXPECT_EQ(mismatches, 0) << forms[form].first;
  }
}

struct Case {
  Function function;
  uint32_t argument, expected;
  const char* rule;
};

TEST(Approximate, Ex2FollowsEachLineOfItsRule) {
  const Case cases[] = {
      {ex2_approx_ftz_f32, 0xffc00001, 0x7fffffff, "a NaN is canonical"},
      {ex2_approx_ftz_f32, 0x7f800000, 0x7f800000, "2^Inf"},
      {ex2_approx_ftz_f32, 0xff800000, 0x00000000, "2^-Inf"},
      {ex2_approx_ftz_f32, 0x80000001, 0x3f800000, "a subnormal counts as zero"},
      {ex2_approx_ftz_f32, 0x43800000, 0x7f800000, "256 and above"},
      {ex2_approx_ftz_f32, 0xc3800000, 0x00000000, "-256 and below"},
      {ex2_approx_ftz_f32, 0x43000000, 0x7f800000, "128 overflows"},
      {ex2_approx_ftz_f32, 0x40400000, 0x41000000, "2^3 is exact"},
      {ex2_approx_ftz_f32, 0xc0400000, 0x3e000000, "2^-3 is exact"},
      {ex2_approx_ftz_f32, 0xc2fc0000, 0x00800000, "2^-126 is the last normal"},
      {ex2_approx_ftz_f32, 0xc2fc0001, 0x00000000, "below 2^-126 the ftz form flushes"},
      {ex2_approx_f32, 0xc2fe0000, 0x003fffff,
       "a subnormal result is kept by the plain form, the square of 2^-63.5"},
      {ex2_approx_f32, 0xc3150000, 0x00000001, "2^-149 is the last subnormal"},
      {ex2_approx_f32, 0xc3160000, 0x00000000, "2^-150 squares to half of it: to even"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(c.function(c.argument), c.expected)
        << c.rule << std::hex << " (argument 0x" << c.argument << ")";
}

TEST(Approximate, Lg2OutsideItsRecordedBinadeIsRefused) {
  EXPECT_EQ(lg2_approx_ftz_f32(0x40000000), 0x3f800000u);
  EXPECT_EQ(lg2_approx_ftz_f32(0x00000000), 0xff800000u);
  try {
    lg2_approx_ftz_f32(0x3fc00000);
    FAIL() << "lg2 of 1.5 was computed without a recorded table";
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("lg2.approx.ftz.f32 of 1.5"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::vm
