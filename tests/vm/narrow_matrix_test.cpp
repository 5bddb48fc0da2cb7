// Products of elements of less than a byte: mma and wmma of single bits, wmma of four bits, against counts
// and sums of matrices that are laid out here as the figures of the PTX ISA do. (On a GPU: tools/fidelity.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/vm/checks/checks.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace narrow_matrix_test {

constexpr uint32_t kThreads = 320;  // ten words of each input for every lane of the first warp

/// A of rows x k and B of k x 8 elements of `bits` bits, and C.
struct Operands {
  int rows, k, bits;
  bool is_signed;
  uint32_t a[16][256] = {}, b[256][8] = {};
  int32_t c[16][8] = {};

  Operands(int r, int depth, int width, bool with_sign)
      : rows(r), k(depth), bits(width), is_signed(with_sign) {
    uint32_t seed = 7;
    const auto draw = [&] { return (seed = seed * 1664525 + 1013904223) >> 16; };
    const uint32_t mask = (1u << bits) - 1;
    for (auto& row : a)
      for (uint32_t& x : row) x = draw() & mask;
    for (auto& row : b)
      for (uint32_t& x : row) x = draw() & mask;
    for (auto& row : c)
      for (int32_t& x : row) x = static_cast<int32_t>(draw()) - 30000;
  }
  int value(uint32_t pattern) const {
    return is_signed && pattern >> (bits - 1) ? static_cast<int>(pattern) - (1 << bits)
                                              : static_cast<int>(pattern);
  }
  /// Elements [first, first + 32 / bits) along k of a row of A, or of a column of B, the first lowest.
  uint32_t word(bool of_a, int line, int first) const {
    uint32_t made = 0;
    for (int i = 0; i < 32 / bits; ++i) made |= (of_a ? a[line][first + i] : b[first + i][line]) << i * bits;
    return made;
  }
};

std::string list(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}%r{}", i ? ", " : "", first + i);
  return "{" + text + "}";
}

/// C of the fragment registers r0 .. in words of the third input, as D's are stored.
void put_sum(const Operands& given, SmallKernel& kernel) {
  for (int row = 0; row < given.rows; ++row)
    for (int n = 0; n < 8; ++n)
      kernel.c[static_cast<size_t>(32 * (2 * (row / 8) + n % 2) + 4 * (row % 8) + n / 2)] =
          static_cast<uint32_t>(given.c[row][n]);
}

SmallKernel empty_kernel() {
  return {.body = "setp.ge.u32 %p0, %t, 32; @%p0 ret;\n",
          .a = std::vector<uint32_t>(kThreads),
          .b = std::vector<uint32_t>(kThreads),
          .c = std::vector<uint32_t>(kThreads),
          .threads = kThreads};
}

/// mma of fragments: register r of A is row g + 8 (r mod 2), words t + 4 (r div 2) of it.
SmallKernel fragments_kernel(const std::string& form, const Operands& given) {
  SmallKernel kernel = empty_kernel();
  const int words = given.k * given.bits / 32, halves = given.rows / 8, b_registers = words / 4,
            a_registers = halves * b_registers, sums = 2 * halves, per = 32 / given.bits;
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < a_registers; ++r) {
      const int row = lane / 4 + 8 * (r % halves), word = lane % 4 + 4 * (r / halves);
      kernel.a[static_cast<size_t>(32 * r + lane)] = given.word(true, row, per * word);
      if (r < b_registers)
        kernel.b[static_cast<size_t>(32 * r + lane)] = given.word(false, lane / 4, per * (lane % 4 + 4 * r));
    }
  put_sum(given, kernel);
  for (int r = 0; r < a_registers; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pa+{}];\n", r, 128 * r);
  for (int r = 0; r < b_registers; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pb+{}];\n", 4 + r, 128 * r);
  for (int r = 0; r < sums; ++r)
    kernel.body += fmt::format("ld.global.b32 %r{}, [%pc+{}];\n", 8 + r, 128 * r);
  kernel.body += fmt::format("{} {}, {}, {}, {};\n", form, list(12, sums), list(0, a_registers),
                             list(4, b_registers), list(8, sums));
  for (int r = 0; r < sums; ++r)
    kernel.body += fmt::format("st.global.b32 [%pd+{}], %r{};\n", 128 * r, 12 + r);
  kernel.body += "ret;\n";
  return kernel;
}

void expect(const Operands& given, const SmallKernel& kernel, const std::string& form, bool by_rows) {
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << form << ": " << outcome.trap->message;
  const Tensor& d = outcome.outputs.at("d");
  const bool exclusive = form.find("xor") != std::string::npos;
  for (int row = 0; row < given.rows; ++row)
    for (int n = 0; n < 8; ++n) {
      int64_t expected = given.c[row][n];
      for (int k = 0; k < given.k; ++k) {
        const uint32_t x = given.a[row][k], y = given.b[k][n];
        expected += exclusive ? static_cast<int>(x ^ y) : given.value(x) * given.value(y);
      }
      const int at = by_rows ? 8 * row + n : 32 * (2 * (row / 8) + n % 2) + 4 * (row % 8) + n / 2;
      ASSERT_EQ(static_cast<int32_t>(d.bits(at)), expected) << form << ", row " << row << ", column " << n;
    }
}

TEST(NarrowMatrix, BitsOfARowAndAColumnAreCounted) {
  const struct {
    const char* shape;
    int rows, k;
  } shapes[] = {{"m8n8k128", 8, 128}, {"m16n8k128", 16, 128}, {"m16n8k256", 16, 256}};
  for (const auto& shape : shapes)
    for (const char* counted : {"and", "xor"}) {
      const Operands given(shape.rows, shape.k, 1, false);
      const std::string form =
          fmt::format("mma.sync.aligned.{}.row.col.s32.b1.b1.s32.{}.popc", shape.shape, counted);
      expect(given, fragments_kernel(form, given), form, false);
    }
}

/// wmma with its loads: rows of A and columns of B lie in words one after another, further apart than dense.
SmallKernel memory_kernel(const std::string& form, const std::string& types, const Operands& given) {
  SmallKernel kernel = empty_kernel();
  const int words = given.k * given.bits / 32, per = 32 / given.bits, stride = 2 * words;
  for (int line = 0; line < 8; ++line)
    for (int w = 0; w < words; ++w) {
      kernel.a[static_cast<size_t>(line * stride + w)] = given.word(true, line, w * per);
      kernel.b[static_cast<size_t>(line * stride + w)] = given.word(false, line, w * per);
    }
  for (int row = 0; row < 8; ++row)
    for (int n = 0; n < 8; ++n)
      kernel.c[static_cast<size_t>(8 * n + row)] = static_cast<uint32_t>(given.c[row][n]);
  const std::string shape = given.bits == 1 ? "m8n8k128" : "m8n8k32";
  for (const char* pointer : {"%pa", "%pb", "%pc", "%pd"})  // of the first thread: one for all
    kernel.body += fmt::format("sub.s64 {0}, {0}, %at;\n", pointer);
  kernel.body += fmt::format(
      "wmma.load.a.sync.aligned.row.{0}.global.{1} {{%r0}}, [%pa], {2};\n"
      "wmma.load.b.sync.aligned.col.{0}.{1} {{%r1}}, [%pb], {2};\n"
      "wmma.load.c.sync.aligned.col.{0}.s32 {{%r2, %r3}}, [%pc];\n"
      "{3} {{%r4, %r5}}, {{%r0}}, {{%r1}}, {{%r2, %r3}};\n"
      "wmma.store.d.sync.aligned.row.{0}.global.s32 [%pd], {{%r4, %r5}}, 8;\nret;\n",
      shape, types, stride * per, form);
  return kernel;
}

TEST(NarrowMatrix, FragmentsOfLessThanAByteComeFromMemoryAndGoBack) {
  const struct {
    const char *form, *type;
    int k, bits;
    bool is_signed;
  } forms[] = {{"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "b1", 128, 1, false},
               {"wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "b1", 128, 1, false},
               {"wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32", "s4", 32, 4, true},
               {"wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32.satfinite", "u4", 32, 4, false}};
  for (const auto& f : forms) {
    const Operands given(8, f.k, f.bits, f.is_signed);
    expect(given, memory_kernel(f.form, f.type, given), f.form, true);
  }
}

TEST(NarrowMatrix, ABitThatNothingWroteSpoilsItsRow) {
  const Operands given(16, 256, 1, false);
  const std::string form = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc";
  for (const bool written : {true, false}) {
    SmallKernel kernel = fragments_kernel(form, given);
    if (!written) {
      const std::string load = "ld.global.b32 %r3, [%pa+384];\n";
      kernel.body.erase(kernel.body.find(load), load.size());
    }
    TensorMap inputs;
    const Program program = plan_of(kernel, inputs);
    Checks checks = Checks::none();
    checks.unwritten = true;
    const CheckReport report = run_checked(program, inputs, {.threads = 1}, checks);
    const bool said = std::any_of(report.findings.begin(), report.findings.end(), [](const CheckFinding& f) {
      return f.message.find("64 of 320 elements of d, first d[t=64], depend on a register") !=
             std::string::npos;
    });
    EXPECT_EQ(said, !written);
  }
}

}  // namespace narrow_matrix_test
}  // namespace assay::vm
