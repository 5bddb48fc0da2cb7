// wgmma.mma_async.sp: the dense product that it stands for, by metadata laid out here as the PTX ISA does;
// what it refuses, and what the checks say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/checks/checks.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace sparse_wgmma_test {

constexpr const char* tile = ".shared .align 1024 .b8 tile[8192];";

/// A sparse product of a warpgroup with eight columns.
struct SparseProduct {
  const char* name;  ///< behind "wgmma.mma_async.sp.sync.aligned.m64n8"
  int k, bits, selector;
  bool in_shared;
  const char* modifiers;  ///< behind scale-d
};

int kept_of(int row, int at) {
  return 1 + (row + at) % 3;
}
int b_of(int k, int column) {
  return (k + 3 * column) % 4 - 1;
}
/// Of four (tf32: of two) places the first and the last that the row keeps.
std::pair<int, int> places_of(int row, int chunk, bool tf32) {
  static constexpr std::pair<int, int> choices[] = {{0, 1}, {0, 3}, {1, 2}, {2, 3}, {1, 3}, {0, 2}};
  const int choice = (row + 5 * chunk) % 6;
  return tf32 ? std::pair{choice % 2, choice % 2} : choices[choice];
}

uint64_t bits_of_small(int value, int bits, bool integer) {
  if (integer) return static_cast<uint64_t>(value) & 0xff;
  const auto word = std::bit_cast<uint32_t>(static_cast<float>(value));
  return bits == 32 ? word : word >> 16;  // bf16
}

SmallKernel kernel_of(const SparseProduct& p, bool with_metadata = true) {
  const bool integer = p.bits == 8, tf32 = p.bits == 32;
  const int per = 32 / p.bits, depth = p.k / 2, group = tf32 ? 2 : 4;
  SmallKernel kernel{.declarations = tile, .threads = 1024};  // of which the first 128 work
  kernel.a.resize(1024), kernel.b.resize(1024);
  for (int row = 0; row < 64; ++row)
    for (int at = 0; at < depth; ++at) {
      // Register fragments of A as of the dense product with half of k, or K-major pieces without a swizzle.
      const int word = at / per, lane = 32 * (row / 16) + 4 * (row % 8) + word % 4,
                reg = row % 16 / 8 + 2 * (word / 4);
      const size_t place =
          p.in_shared ? static_cast<size_t>(64 * (row / 8) + 32 * (word / 4) + 4 * (row % 8) + word % 4)
                      : static_cast<size_t>(128 * reg + lane);
      kernel.a[place] |=
          static_cast<uint32_t>(bits_of_small(kept_of(row, at), p.bits, integer) << p.bits * (at % per));
    }
  for (int row = 0; row < 64; ++row)
    for (int chunk = 0; chunk < p.k / group; ++chunk) {
      const auto [first, second] = places_of(row, chunk, tf32);
      const uint32_t four = tf32 ? (first ? 0xe : 0x4) : static_cast<uint32_t>(first | second << 2);
      const int quad = 32 * (row / 16) + 4 * (row % 8);
      // Of 8 bits: threads 0 and 2 of the quad have row g, 1 and 3 row g + 8, eight chunks each; of more: two
      // threads, by the selector, have four chunks of both rows each.
      const int thread = integer ? quad + 2 * (chunk / 8) + row % 16 / 8 : quad + 2 * p.selector + chunk / 4;
      const int shift = integer ? 4 * (chunk % 8) : 16 * (row % 16 / 8) + 4 * (chunk % 4);
      kernel.a[static_cast<size_t>(512 + thread)] |= four << shift;
    }
  for (int n = 0; n < 8; ++n)
    for (int k = 0; k < p.k; ++k)
      kernel.b[static_cast<size_t>(32 * (k / per / 4) + 4 * n + k / per % 4)] |=
          static_cast<uint32_t>(bits_of_small(b_of(k, n), p.bits, integer) << p.bits * (k % per));
  kernel.body =
      "setp.ge.u32 %p0, %t, 128; @%p0 ret;\nmov.u32 %r0, tile; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0;\n"
      "and.b32 %r2, %r0, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd8, %r2; or.b64 %rd8, %rd8, "
      "0x1000080000;\nadd.s64 %rd9, %rd8, 256;\n";
  for (int r = 0; r < 4; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pa+{}]; st.shared.b32 [%r1+{}], %r{};\n", 10 + r,
                               512 * r, 512 * r, 10 + r);
  if (with_metadata) kernel.body += "ld.global.b32 %r20, [%pa+2048];\n";
  kernel.body += "ld.global.b32 %r3, [%pb]; st.shared.b32 [%r1+4096], %r3;\n";
  for (int r = 0; r < 4; ++r) kernel.body += fmt::format("mov.f32 %f{}, 0f00000000;\n", 1 + r);
  const char* const sums = integer ? "{%r14,%r15,%r16,%r17}" : "{%f1,%f2,%f3,%f4}";
  kernel.body += fmt::format(
      "fence.proxy.async; bar.sync 0, 128; wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sp.sync.aligned.m64n8{} {}, {}, %rd9, %r20, {}, 0{};\n"
      "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
      p.name, sums, p.in_shared ? "%rd8" : "{%r10,%r11,%r12,%r13}", p.selector, p.modifiers);
  for (int r = 0; r < 4; ++r)
    kernel.body += fmt::format("st.global.b32 [%pd+{}], {}{};\n", 512 * r, integer ? "%r" : "%f",
                               integer ? 14 + r : 1 + r);
  kernel.body += "ret;\n";
  return kernel;
}

TEST(SparseWgmma, IsTheDenseProductThatItStandsFor) {
  const SparseProduct products[] = {{"k32.f32.bf16.bf16", 32, 16, 0, false, ", 1, 1, 0"},
                                    {"k32.f32.bf16.bf16", 32, 16, 1, false, ", 1, 1, 0"},
                                    {"k32.f32.bf16.bf16", 32, 16, 1, true, ", 1, 1, 0, 0"},
                                    {"k16.f32.tf32.tf32", 16, 32, 0, false, ", 1, 1"},
                                    {"k16.f32.tf32.tf32", 16, 32, 1, true, ", 1, 1"},
                                    {"k64.s32.s8.s8", 64, 8, 0, false, ""},
                                    {"k64.s32.s8.s8", 64, 8, 0, true, ""}};
  for (const SparseProduct& p : products) {
    const bool integer = p.bits == 8, tf32 = p.bits == 32;
    const Outcome outcome = run_small(kernel_of(p));
    ASSERT_FALSE(outcome.trap) << p.name << ": " << outcome.trap->message;
    const std::vector<uint32_t> words = words_of(outcome);
    const int group = tf32 ? 2 : 4, kept = group / 2;
    for (int row = 0; row < 64; ++row)
      for (int n = 0; n < 8; ++n) {
        int expected = 0;
        for (int at = 0; at < p.k / 2; ++at) {
          const auto [first, second] = places_of(row, at / kept, tf32);
          expected += kept_of(row, at) * b_of(at / kept * group + (at % kept ? second : first), n);
        }
        const int lane = 32 * (row / 16) + 4 * (row % 8) + n / 2, reg = 2 * (row % 16 / 8) + n % 2;
        const uint32_t word = words[static_cast<size_t>(128 * reg + lane)];
        const double got = integer ? static_cast<int32_t>(word) : std::bit_cast<float>(word);
        ASSERT_EQ(got, expected) << p.name << ' ' << p.in_shared << p.selector << ", row " << row
                                 << ", column " << n;
      }
  }
}

TEST(SparseWgmma, ASelectorBeyondItsChoicesIsRefused) {
  EXPECT_THROW(run_small(kernel_of({"k32.f32.bf16.bf16", 32, 16, 2, false, ", 1, 1, 0"})), BadInput);
  EXPECT_THROW(run_small(kernel_of({"k64.s32.s8.s8", 64, 8, 1, false, ""})), BadInput);
}

TEST(SparseWgmma, MetadataThatNothingWroteSpoilTheSum) {
  for (const bool written : {true, false}) {
    TensorMap inputs;
    const Program program =
        plan_of(kernel_of({"k32.f32.bf16.bf16", 32, 16, 0, true, ", 1, 1, 0, 0"}, written), inputs);
    Checks checks = Checks::none();
    checks.unwritten = true;
    const CheckReport report = run_checked(program, inputs, {.threads = 1}, checks);
    const bool said = std::any_of(report.findings.begin(), report.findings.end(), [](const CheckFinding& f) {
      return f.message.find("read by wgmma.mma_async.sp") != std::string::npos;
    });
    EXPECT_EQ(said, !written);
  }
}

TEST(SparseWgmma, MetadataMayBeWrittenWhileItIsInFlightAndAMayNot) {
  for (const bool of_a : {true, false}) {
    SmallKernel kernel = kernel_of({"k32.f32.bf16.bf16", 32, 16, 0, false, ", 1, 1, 0"});
    kernel.body.insert(kernel.body.find("wgmma.wait_group"),
                       of_a ? "mov.b32 %r12, 0;\n" : "mov.b32 %r20, 0;\n");
    TensorMap inputs;
    const Program program = plan_of(kernel, inputs);
    Checks checks = Checks::none();
    checks.async = true;
    EXPECT_EQ(run_checked(program, inputs, {.threads = 1}, checks).findings.size(), of_a ? 1u : 0u);
  }
}

}  // namespace sparse_wgmma_test
}  // namespace assay::vm
