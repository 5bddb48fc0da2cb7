// Approximate instructions: every result that an H200 gave, by its digests; samples, for a message with
// operands; the rules, one line each.
#include "src/base/vm/approximate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "src/base/vm/instruction_row.h"
#include "tests/vm/recorded_file.h"
#include "tools/approximate_inputs.h"
#include "tools/recorded_inputs.h"

namespace assay::vm {
namespace approximate_test {

using recorded::ApproximateForm;
using recorded::Operands;

/// The digest of a block of indices, results by the row's lane function.
[[gnu::target_clones("avx2", "default")]] uint32_t digest_of_block(const Row& row, Operands operands,
                                                                   uint32_t block) {
  alignas(64) uint32_t a[32], b[32] = {}, words[32];
  alignas(64) uint64_t wide[32], results[32];
  const uint32_t size = recorded::block_size(operands), first = block * size;
  uint32_t digest = 0;
  for (uint32_t at = 0; at < size; at += 32) {
    const uint32_t from = first + at;
    for (uint32_t i = 0; i < 32; i++) a[i] = from + i;
    if (operands == Operands::pair)
      for (uint32_t i = 0; i < 32; i++) {
        const recorded::Pair pair = recorded::drawn_pair(from + i);
        a[i] = pair.a, b[i] = pair.b;
      }
    if (operands == Operands::high)
      for (uint32_t i = 0; i < 32; i++) wide[i] = uint64_t{from + i} << 32 | recorded::hashed(from + i);
    const bool high = operands == Operands::high;
    row.lanes(high ? static_cast<void*>(results) : words, high ? static_cast<void*>(wide) : a, b, nullptr,
              nullptr);
    if (high)
      for (uint32_t i = 0; i < 32; i++) words[i] = recorded::condensed(results[i]);
    for (uint32_t i = 0; i < 32; i++) digest += recorded::digest_term(from + i, words[i]);
  }
  return digest;
}

/// A form's blocks to look at: those around special values and thresholds, and a 64th of the others by the
/// seed; with ASSAY_TEST_LONG all of them.
std::set<uint32_t> chosen_blocks(Operands operands, uint32_t seed) {
  const auto count = static_cast<uint32_t>(index_count(operands) / block_size(operands));
  std::set<uint32_t> blocks{0};
  if (operands == Operands::word)  // zeros, infinities, the smallest normal number, one, 2^-8, 8, 256, 2^126
    for (const uint32_t at : {0x000, 0x007, 0x008, 0x3b7, 0x3b8, 0x3f7, 0x3f8, 0x400, 0x410, 0x438, 0x7e8,
                              0x7f8, 0x800, 0x807, 0xc2f, 0xff8})
      blocks.insert(at);
  if (operands == Operands::high)
    for (const uint32_t at : {0x001, 0x3fe, 0x3ff, 0x7fd, 0x7fe, 0x7ff, 0x800, 0xbff, 0xfff})
      blocks.insert(at);
  std::mt19937 random(seed);
  const bool all = std::getenv("ASSAY_TEST_LONG") != nullptr;
  for (uint32_t i = 0; i < (all ? count : count / 64); i++) blocks.insert(all ? i : random() % count);
  return blocks;
}

struct Job {
  const ApproximateForm* form;
  const Row* row;
  uint32_t block, expected;
  uint32_t digest = 0;
};

void run_all(std::vector<Job>& jobs) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); t++)
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < jobs.size();)
        jobs[i].digest = digest_of_block(*jobs[i].row, jobs[i].form->operands, jobs[i].block);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Approximate, FormsGiveTheBitsOfAnH200) {
  const uint32_t seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  const std::vector<uint32_t> digests = read_words("approximate_digests.bin.gz");
  std::vector<Job> jobs;
  size_t first = 0;
  for (const ApproximateForm& form : recorded::kApproximateForms) {
    const Row* row = find_row(form.name);
    ASSERT_NE(row, nullptr) << form.name;
    for (const uint32_t block : chosen_blocks(form.operands, seed))
      jobs.push_back({&form, row, block, digests.at(first + block)});
    first += index_count(form.operands) / block_size(form.operands);
  }
  ASSERT_EQ(first, digests.size());
  run_all(jobs);
  std::set<std::string> failed;
  for (const Job& job : jobs)
    if (job.digest != job.expected && failed.insert(job.form->name).second)
      ADD_FAILURE() << job.form->name << " differs from the H200 for an index from " << std::hex << "0x"
                    << job.block * uint64_t{block_size(job.form->operands)} << " on, seed " << std::dec
                    << seed;
}

/// Both halves of a packed register are the one-half form.
TEST(Approximate, PackedFormsAreTheirHalves) {
  for (const char* name : {"ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"}) {
    const Row *one = find_row(name), *two = find_row(std::string(name) + "x2");
    ASSERT_NE(two, nullptr) << name;
    for (uint32_t first = 0; first < 0x10000; first += 32) {
      uint32_t x[32], low[32], high[32], packed[32], both[32];
      for (uint32_t i = 0; i < 32; i++)
        x[i] = first + i, high[i] = x[i] ^ 0x5a5a, packed[i] = high[i] << 16 | x[i];
      one->lanes(low, x, nullptr, nullptr, nullptr);
      one->lanes(high, high, nullptr, nullptr, nullptr);
      two->lanes(both, packed, nullptr, nullptr, nullptr);
      for (int i = 0; i < 32; i++)
        ASSERT_EQ(both[i], high[i] << 16 | (low[i] & 0xffff)) << name << " " << packed[i];
    }
  }
}

using Function = uint32_t (*)(uint32_t);

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
      {"rsqrt.approx.ftz.f32", rsqrt_approx_ftz_f32}, {"rsqrt.approx.f32", rsqrt_approx_f32},
      {"lg2.approx.ftz.f32", lg2_approx_ftz_f32},     {"lg2.approx.f32", lg2_approx_f32},
      {"sqrt.approx.ftz.f32", sqrt_approx_ftz_f32},   {"sqrt.approx.f32", sqrt_approx_f32}};
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

TEST(Approximate, FollowsEachLineOfItsRules) {
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
      {rcp_approx_ftz_f32, 0x7e800001, 0x00000000, "a subnormal reciprocal is flushed"},
      {rcp_approx_f32, 0x7e800001, 0x007fffff, "and kept by the plain form"},
      {rsqrt_approx_ftz_f32, 0x40800000, 0x3f000000, "powers of four are exact"},
      {rsqrt_approx_f32, 0x80000001, 0x7fffffff, "a negative subnormal has no root"},
      {rsqrt_approx_ftz_f32, 0x80000001, 0xff800000, "but counts as zero with ftz"},
      {lg2_approx_ftz_f32, 0x3f800000, 0x00000000, "log2(1)"},
      {lg2_approx_ftz_f32, 0x3f7fffff, 0xb24b4000, "just below one, one's complement of 36 fraction bits"},
      {lg2_approx_f32, 0x00000001, 0xc3150000, "the logarithm of a subnormal"},
      {lg2_approx_ftz_f32, 0x00000001, 0xff800000, "which ftz takes for zero"},
      {sqrt_approx_ftz_f32, 0x80000001, 0x80000000, "sqrt(-0)"},
      {sqrt_approx_f32, 0x80000001, 0x7fffffff, "a negative subnormal"},
      {sin_approx_f32, 0x00000001, 0x00000000, "less than 2^-25 turns"},
      {sin_approx_f32, 0x80000001, 0x80000000, "keeps its sign"},
      {cos_approx_f32, 0x7f800000, 0x7fffffff, "cos(Inf)"},
      {cos_approx_f32, 0x7f7fffff, 0x3f800000, "a huge argument is a whole number of turns"},
      {tanh_approx_f32, 0x00000001, 0x00000001, "tanh keeps subnormals"},
      {tanh_approx_f32, 0xc1000000, 0xbf800000, "tanh(-8)"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(c.function(c.argument), c.expected)
        << c.rule << std::hex << " (argument 0x" << c.argument << ")";
}

TEST(Approximate, DoublesAreReadByTheirHighWord) {
  EXPECT_EQ(rcp_approx_ftz_f64(0x4000000000000000), 0x3fe0000000000000u);
  EXPECT_EQ(rcp_approx_ftz_f64(0x40000000ffffffff), 0x3fe0000000000000u);
  EXPECT_EQ(rcp_approx_ftz_f64(0x7ff0000000000001), 0u)
      << "a NaN that shows in the low word only counts as Inf";
  EXPECT_EQ(rcp_approx_ftz_f64(0x7ff8000000000000), 0x7fffffff00000000u);
  EXPECT_EQ(rcp_approx_ftz_f64(0x000fffffffffffff), 0x7ff0000000000000u) << "a subnormal counts as zero";
  EXPECT_EQ(rsqrt_approx_ftz_f64(0x4010000000000000), 0x3fe0000000000000u);
  EXPECT_EQ(rsqrt_approx_f64(0x4010000000000000), 0x3fe0000000000000u);
  EXPECT_EQ(rsqrt_approx_f64(0x8000000000000000), 0xfff0000000000000u);
  EXPECT_EQ(rsqrt_approx_f64(0x0000000000000004), 0x6170000000000000u) << "2^-1072 is no zero";
  EXPECT_EQ(rsqrt_approx_f64(0xc000000000000000), 0xfff8000000000000u);
}

}  // namespace approximate_test
}  // namespace assay::vm
