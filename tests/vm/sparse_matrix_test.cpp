// mma.sp: the dense product that it stands for, by metadata laid out here as the figures of the PTX ISA do;
// what it refuses, and what the checks say. (On a GPU: tools/fidelity.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/matrix_form.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

constexpr uint32_t kThreads = 320;  // ten words of each input for every lane of the first warp

struct Product {
  std::string name;  ///< behind "mma.sp.sync.aligned."
  int k, selector = 0;
  Element a, b = a, sum = Element::f32;
};

uint32_t pattern_of(Element e, int value) {
  if (format_of(e).integer) return static_cast<uint32_t>(value);
  const auto f32 = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (e == Element::f32 || e == Element::tf32) return f32;
  if (e == Element::bf16) return f32 >> 16;
  const auto f16 = static_cast<uint32_t>(encode(Dtype::fp16, value));
  if (e == Element::f16) return f16;
  if (e == Element::e5m2) return f16 >> 8;
  uint32_t pattern = 0;
  while (value_of(e, pattern) != value) ++pattern;
  return pattern;
}

/// A and its compressed form, all values small; of every group as many as the format keeps.
struct Operands {
  int a[16][128] = {}, kept[16][64] = {}, b[128][8] = {};
  uint32_t metadata[32] = {};

  Operands(const Product& p, uint32_t seed) {
    const int bits = format_of(p.a).bits,
              group = bits == 32  ? 2
                      : bits == 4 ? 8
                                  : 4,
              words = p.k * bits / 256;
    const auto draw = [&](int n) {
      seed = seed * 1664525 + 1013904223;
      return static_cast<int>((seed >> 16) % static_cast<uint32_t>(n));
    };
    const bool is_unsigned = p.a == Element::u8 || p.a == Element::u4;
    for (auto& row : b)
      for (int& value : row) value = draw(4) - (is_unsigned ? 0 : 2);
    for (int row = 0; row < 16; ++row)
      for (int chunk = 0; chunk < p.k / group; ++chunk) {
        const int first = draw(3), second = first + 1 + draw(3 - first);  // of four places
        uint32_t four = static_cast<uint32_t>(first | second << 2);
        if (group == 2) four = draw(2) ? 0xe : 0x4;
        int* const to = &kept[row][chunk * group / 2];
        for (int i = 0; i < group / 2; ++i) {
          const int place = group == 2   ? (four == 0xe)
                            : group == 4 ? (i ? second : first)
                                         : 2 * (i / 2 ? second : first) + i % 2;
          to[i] = 1 + draw(3);
          a[row][chunk * group + place] = to[i];
        }
        const int lane = bits >= 16 ? 4 * (row % 8) + p.selector * words + chunk / 4
                                    : 4 * (row % 8) + p.selector * 2 * words + 2 * (chunk / 8) + row / 8;
        const int bit = bits >= 16 ? 16 * (row / 8) + 4 * (chunk % 4) : 4 * (chunk % 8);
        metadata[lane] |= four << bit;
      }
  }
};

SmallKernel kernel_of(const Product& p, const Operands& given, bool with_metadata = true) {
  const int per_a = 32 / format_of(p.a).bits, a_registers = p.k / 4 / per_a, b_registers = p.k / 4 / per_a,
            sums = p.sum == Element::f16 ? 2 : 4;
  SmallKernel kernel{
      .a = std::vector<uint32_t>(kThreads), .b = std::vector<uint32_t>(kThreads), .threads = kThreads};
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < a_registers; ++r)
      for (int i = 0; i < per_a; ++i)
        kernel.a[static_cast<size_t>(32 * r + lane)] |=
            (pattern_of(p.a, given.kept[lane / 4 + 8 * (r % 2)][per_a * (lane % 4 + 4 * (r / 2)) + i]) &
             ((uint64_t{1} << 32 / per_a) - 1))
            << 32 / per_a * i;
    kernel.a[static_cast<size_t>(32 * 9 + lane)] = given.metadata[lane];
    for (int r = 0; r < b_registers; ++r)
      for (int i = 0; i < per_a; ++i)
        kernel.b[static_cast<size_t>(32 * r + lane)] |=
            (pattern_of(p.b, given.b[per_a * (lane % 4 + 4 * r) + i][lane / 4]) &
             ((uint64_t{1} << 32 / per_a) - 1))
            << 32 / per_a * i;
  }
  const auto list = [](const char* prefix, int first, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", prefix, first + i);
    return "{" + text + "}";
  };
  kernel.body = "setp.ge.u32 %p0, %t, 32; @%p0 ret;\n";
  for (int r = 0; r < a_registers; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pa+{}];\n", r, 128 * r);
  for (int r = 0; r < b_registers; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pb+{}];\n", 4 + r, 128 * r);
  if (with_metadata) kernel.body += "ld.global.b32 %r8, [%pa+1152];\n";
  for (int r = 0; r < 4; ++r) kernel.body += fmt::format("mov.b32 %r{}, 0;\n", 10 + r);
  kernel.body +=
      fmt::format("mma.sp.sync.aligned.{} {}, {}, {}, {}, %r8, {};\n", p.name, list("%r", 14, sums),
                  list("%r", 0, a_registers), list("%r", 4, b_registers), list("%r", 10, sums), p.selector);
  for (int r = 0; r < sums; ++r)
    kernel.body += fmt::format("st.global.b32 [%pd+{}], %r{};\n", 128 * r, 14 + r);
  kernel.body += "ret;\n";
  return kernel;
}

const Product kProducts[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 3, Element::f16},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 1, Element::bf16},
    {"m16n8k32.row.col.f32.f16.f16.f32", 32, 1, Element::f16},
    {"m16n8k32.row.col.f16.f16.f16.f16", 32, 0, Element::f16, Element::f16, Element::f16},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 2, Element::tf32},
    {"m16n8k16.row.col.f32.tf32.tf32.f32", 16, 1, Element::tf32},
    {"m16n8k64.row.col.f32.e4m3.e5m2.f32", 64, 0, Element::e4m3, Element::e5m2},
    {"m16n8k32.row.col.s32.s8.s8.s32", 32, 1, Element::s8, Element::s8, Element::s32},
    {"m16n8k64.row.col.satfinite.s32.u8.u8.s32", 64, 0, Element::u8, Element::u8, Element::s32},
    {"m16n8k64.row.col.s32.s4.s4.s32", 64, 1, Element::s4, Element::s4, Element::s32},
    {"m16n8k128.row.col.s32.u4.u4.s32", 128, 0, Element::u4, Element::u4, Element::s32}};

TEST(SparseMatrix, EveryFormIsTheDenseProductThatItStandsFor) {
  for (const Product& p : kProducts) {
    const Operands given(p, 7);
    const Outcome outcome = run_small(kernel_of(p, given));
    ASSERT_FALSE(outcome.trap) << p.name << ": " << outcome.trap->message;
    const Tensor& d = outcome.outputs.at("d");
    for (int row = 0; row < 16; ++row)
      for (int n = 0; n < 8; ++n) {
        int expected = 0;
        for (int k = 0; k < p.k; ++k) expected += given.a[row][k] * given.b[k][n];
        const bool half = p.sum == Element::f16;
        const int lane = 4 * (row % 8) + n / 2, reg = half ? row / 8 : 2 * (row / 8) + n % 2;
        const uint64_t word = d.bits(32 * reg + lane);
        const double got = value_of(p.sum, half ? word >> 16 * (n % 2) & 0xffff : word);
        ASSERT_EQ(got, expected) << p.name << ", row " << row << ", column " << n;
      }
  }
}

TEST(SparseMatrix, ASelectorBeyondItsChoicesIsRefused) {
  Product p = kProducts[2];
  p.selector = 2;
  const Operands given(kProducts[2], 7);
  try {
    run_small(kernel_of(p, given));
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("a sparsity selector that is no constant below 2"),
              std::string::npos)
        << error.what();
  }
}

TEST(SparseMatrix, MetadataThatNothingWroteSpoilTheSum) {
  for (const bool written : {true, false}) {
    TensorMap inputs;
    SmallKernel kernel = kernel_of(kProducts[2], Operands(kProducts[2], 7), written);
    const Program program = plan_of(kernel, inputs);
    Checks checks = Checks::none();
    checks.unwritten = true;
    const CheckReport report = run_checked(program, inputs, {.threads = 1}, checks);
    const bool said = std::any_of(report.findings.begin(), report.findings.end(), [](const CheckFinding& f) {
      return f.message.find("register %r8") != std::string::npos;
    });
    EXPECT_EQ(said, !written);
  }
}

}  // namespace
}  // namespace assay::vm
