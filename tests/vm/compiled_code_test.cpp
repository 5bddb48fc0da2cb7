// Compiled pieces leave the interpreter's bits: every emission those of its row, programs drawn at random and
// those that leave pieces in every way their outputs, counts and traps.
#include "src/base/vm/compiled/compiled_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "src/base/vm/compiled/emissions.h"
#include "src/base/vm/engine.h"
#include "src/base/vm/launch.h"
#include "tests/vm/drawn_program.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace compiled_code_test {

bool host_compiles() {
  const std::vector<std::string> sets = lane_sets();
  return std::find(sets.begin(), sets.end(), "avx512") != sets.end();
}
#define NEEDS_AVX512() \
  if (!host_compiles()) GTEST_SKIP() << "this processor has no AVX-512"

int test_scale() {
  const char* const text = std::getenv("ASSAY_TEST_SCALE");
  return text ? std::max(1, std::atoi(text)) : 1;
}

/// Zeros, ones, the edges of subnormals and of the finite, NaN of all kinds, shift counts, and their signs.
constexpr uint32_t edges[] = {0,          1,          2,          31,         32,         33,
                              63,         64,         0x7fffffff, 0x00400000, 0x007fffff, 0x00800000,
                              0x00800001, 0x00ffffff, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3f000000,
                              0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x33800000,
                              0x0d800000, 0x1f000000, 0x20000000, 0x5f000000};
uint32_t edge(size_t i) {
  return edges[i / 2 % std::size(edges)] | (i % 2 ? 0x80000000u : 0);
}
constexpr size_t edge_count = 2 * std::size(edges);

/// Cells 0 to 3 of 256 bytes are sources or results, predicates are cells of their own behind them.
constexpr Slot cell_stride = 256, mask_area = 4 * cell_stride, file_bytes = mask_area + 6 * 64;
constexpr Slot guard_slot = mask_area + 4 * 64;

/// The op of a row with sources in cells 1 to 3, its result in `to`.
Op op_of(const Row& row, uint32_t to, bool guarded, bool negated) {
  const auto slot = [](ptx::Type type, uint32_t i) {
    return cell_of(type) == Cell::mask ? mask_area + 64 * i : cell_stride * i;
  };
  Op op;
  op.row = &row, op.kind = row.kind, op.lanes = row.lanes;
  op.d_cell = cell_of(row.result);
  op.d = slot(row.result, to);
  for (uint32_t i = 0; i < 3; ++i)
    if (row.sources[i] != ptx::Type::none) op.s[i] = slot(row.sources[i], i + 1);
  op.guarded = guarded, op.guard_negated = negated;
  if (guarded) op.guard = guard_slot;
  return op;
}

using File = std::array<std::byte, file_bytes>;

/// What the interpreter leaves, and what the compiled op does; also how many lanes it says ran.
void expect_same(const Row& row, const Op& op, const CompiledCode& compiled, const File& before,
                 const std::string& what) {
  alignas(64) File expected = before, got = before;
  Warp warp;
  warp.file = expected.data();
  uint32_t mask = ~0u;
  if (op.guarded) std::memcpy(&mask, before.data() + guard_slot, 4);
  if (op.guard_negated) mask = ~mask;
  alignas(64) uint64_t scratch[32];
  if (row.mask)
    run_compare(warp, op, mask);
  else
    run_lanes(warp, op, mask, scratch);
  warp.file = got.data();
  CompiledRun run{.file = got.data(), .warp = &warp, .stop = ~uint64_t{0}};
  compiled.run(run, 0);
  ASSERT_EQ(run.pc, 1);
  ASSERT_EQ(run.executed, 1u);
  ASSERT_EQ(run.lanes, static_cast<uint64_t>(std::popcount(mask)));
  for (size_t byte = 0; byte < file_bytes; ++byte)
    if (expected[byte] != got[byte]) {
      const size_t lane = byte % cell_stride / (op.d_cell == Cell::wide ? 8 : 4);
      const auto word = [&](const File& file, size_t at) {
        uint64_t bits = 0;
        std::memcpy(&bits, file.data() + at, op.d_cell == Cell::wide ? 8 : 4);
        return bits;
      };
      const size_t at = byte / 4 * 4;
      FAIL() << fmt::format("{} ({}), lane {}: {:#x} for {:#x}; sources {:#x}, {:#x}, {:#x}", row.pattern,
                            what, lane, word(got, at), word(expected, at),
                            word(before, cell_stride + lane * 4), word(before, 2 * cell_stride + lane * 4),
                            word(before, 3 * cell_stride + lane * 4));
    }
}

void put_words(File& file, Slot slot, uint32_t first, uint32_t count, auto word) {
  for (uint32_t i = first; i < first + count; ++i) {
    const uint32_t bits = word(i);
    std::memcpy(file.data() + slot + 4 * i, &bits, 4);
  }
}

/// Every pair of edges in two sources (and all triples in turn), then random words.
void expect_same_everywhere(const Row& row, const Op& op, const CompiledCode& compiled, uint32_t seed,
                            const std::string& what) {
  std::mt19937 random(seed);
  const auto finish = [&](File& file) {
    put_words(file, mask_area, 0, 6 * 16, [&](uint32_t) { return random(); });
    expect_same(row, op, compiled, file, what);
  };
  const int arity = row.sources[1] == ptx::Type::none ? 1 : row.sources[2] == ptx::Type::none ? 2 : 3;
  const size_t all = arity == 1   ? edge_count
                     : arity == 2 ? edge_count * edge_count
                                  : edge_count * edge_count * edge_count;
  const bool is_short = what != "apart";  // the crossing is one and the same work for every op
  for (size_t first = 0; first < (is_short ? std::min<size_t>(all, 2048) : all); first += 64) {
    alignas(64) File file{};
    for (uint32_t cell = 0; cell < 4; ++cell)
      put_words(file, cell * cell_stride, 0, 64, [&](uint32_t i) {
        const size_t n = first + i;
        return cell == 1   ? edge(n)
               : cell == 2 ? edge(n / edge_count)
               : cell == 3 ? edge(n / edge_count / edge_count)
                           : i;
      });
    finish(file);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (int round = 0; round < 64 * test_scale(); ++round) {
    alignas(64) File file{};
    const uint32_t near = round % 3 == 0 ? 0x03ffffff : ~0u, offset = round % 3 == 0 ? 0x3c000000 : 0;
    put_words(file, 0, 0, 4 * 64, [&](uint32_t i) {
      return i % 7 == 0 ? edge(random()) : (static_cast<uint32_t>(random()) & near) + offset;
    });
    // Shift counts and results at the edge of the subnormals.
    if (round % 4 == 1) put_words(file, 2 * cell_stride, 0, 64, [&](uint32_t) { return random() % 70; });
    if (round % 4 == 3)
      put_words(file, cell_stride, 0, 3 * 64, [&](uint32_t i) {
        const uint32_t exponent = i < 64 ? 60 + random() % 8 : i < 128 ? 60 + random() % 8 : random() % 4;
        return static_cast<uint32_t>(random() & 0x807fffff) | exponent << 23;
      });
    finish(file);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Emissions, EachIsARowsAndHasItsBits) {
  NEEDS_AVX512();
  std::set<std::string> met;
  for (const Row& row : lane_rows("avx512")) {
    const Emission* const emission = emission_of(row);
    if (!emission) continue;
    met.insert(row.pattern);
    const auto hold = [&](const Op& op, const std::string& what) {
      Code code;
      code.ops = {op, Op{}};
      code.ops[1].kind = Kind::exit;
      const auto compiled = compile(code);
      ASSERT_TRUE(compiled) << row.pattern;
      expect_same_everywhere(row, op, *compiled, 20261123, what);
    };
    hold(op_of(row, 0, false, false), "apart");
    hold(op_of(row, 0, true, false), "guarded");
    hold(op_of(row, 0, true, true), "guarded by its negation");
    for (uint32_t i = 0; i < 3; ++i)  // the result in a source
      if (row.sources[i] != ptx::Type::none && cell_of(row.sources[i]) == cell_of(row.result))
        hold(op_of(row, i + 1, i == 1, false), fmt::format("result in source {}", i));
    if (row.mask)
      for (const BooleanOp boolean : {BooleanOp::land, BooleanOp::lor, BooleanOp::lxor})
        for (const bool negated : {false, true}) {
          Op op = op_of(row, 1, negated, false);
          op.boolean = boolean, op.third_negated = negated, op.s[2] = mask_area + 64, op.d2 = mask_area + 128;
          hold(op, "combined with a predicate");
        }
    if (HasFatalFailure()) return;
  }
  for (const Emission& emission : emissions())
    EXPECT_TRUE(met.contains(emission.pattern)) << emission.pattern;
}

/// All that a run tells, but for its seconds.
void expect_same_run(const Program& program, const TensorMap& inputs, MachineOptions options,
                     const std::string& text) {
  options.engine = ExecutedBy::interpreter;
  const Outcome expected = run(program, inputs, options);
  options.engine = ExecutedBy::compiled;
  const Outcome got = run(program, inputs, options);
  ASSERT_EQ(expected.trap.has_value(), got.trap.has_value()) << text;
  if (expected.trap) {
    ASSERT_EQ(expected.trap->message, got.trap->message) << text;
  }
  ASSERT_EQ(expected.lane_instructions, got.lane_instructions) << text;
  ASSERT_EQ(expected.exponents.size(), got.exponents.size()) << text;
  for (size_t i = 0; i < got.exponents.size(); ++i) {
    ASSERT_EQ(expected.exponents[i].min, got.exponents[i].min) << text;
    ASSERT_EQ(expected.exponents[i].max, got.exponents[i].max) << text;
    ASSERT_EQ(expected.exponents[i].count, got.exponents[i].count) << text;
    ASSERT_EQ(expected.exponents[i].nans, got.exponents[i].nans) << text;
  }
  for (const auto& [name, tensor] : expected.outputs)
    ASSERT_TRUE(tensor.data == got.outputs.at(name).data) << name << text;
}

TEST(CompiledCode, ProgramsDrawnAtRandomLeaveTheInterpretersBits) {
  NEEDS_AVX512();
  const auto count = static_cast<uint32_t>(300 * test_scale());
  for (uint32_t seed = 0; seed < count; ++seed) {
    DrawnProgram drawing(seed, true);
    SmallKernel kernel{.body = drawing.body()};
    kernel.threads = seed % 4 == 3 ? 40 : 64;  // a warp of eight lanes too
    const auto words = [&] {
      std::vector<uint32_t> all = drawing.words();
      while (all.size() < kernel.threads) all.push_back(all[all.size() % 32] ^ 1);
      all.resize(kernel.threads);
      return all;
    };
    kernel.a = words(), kernel.b = words(), kernel.c = words();
    TensorMap inputs;
    const Program program = plan_of(kernel, inputs);
    expect_same_run(program, inputs, {.threads = 1, .order = seed % 5},
                    fmt::format("seed {}\n{}", seed, text_of(kernel)));
    if (HasFatalFailure()) return;
  }
}

/// Kernels that leave a piece in the middle, at a branch, or never.
TEST(CompiledCode, TrapsAndBudgetsEndAtTheSamePlaces) {
  NEEDS_AVX512();
  const std::string count = "mov.u32 %r1, 0;\nAGAIN: add.u32 %r1, %r1, 1; add.u32 %d, %d, %a;\n";
  const SmallKernel kernels[] = {
      // A load past the end in the third turn, guarded and not; by one lane alone.
      {.body = count + "mul.wide.u32 %rd1, %r1, 40; add.s64 %rd1, %rd1, %pa; ld.global.u32 %r2, [%rd1];"
                       "setp.lt.u32 %p1, %r1, 9; @%p1 bra AGAIN;"},
      {.body = count + "setp.eq.u32 %p2, %r1, 3; @%p2 ld.global.u32 %r2, [%rd0]; setp.lt.u32 %p1, %r1, 9; "
                       "@%p1 bra AGAIN;"},
      {.body = count + "setp.eq.u32 %p2, %t, 17; @%p2 st.global.u32 [%pa+4096], %r1; bra DONE;"},
      {.body = count + "add.s64 %rd2, %pa, 2; ld.global.u32 %r2, [%rd2];"},
      // Endless, with and without work; lanes that leave a loop one after the other.
      {.body = count + "bra AGAIN;", .budget = 1001},
      {.body = "AGAIN: bra AGAIN;", .budget = 1000},
      {.body = count + "setp.lt.u32 %p1, %r1, %t; @%p1 bra AGAIN;"},
      {.body = count + "setp.lt.u32 %p1, %r1, 5000; @!%p1 bra DONE; @%p1 bra AGAIN;"},
      {.body = count + "setp.gt.u32 %p1, %r1, %t; @%p1 exit; bra AGAIN;"},
      {.body = count + "bar.sync 0; setp.lt.u32 %p1, %r1, 7; @%p1 bra AGAIN; trap;"},
  };
  for (size_t i = 0; i < std::size(kernels); ++i)
    for (const uint32_t threads : {32u, 70u}) {
      SmallKernel kernel = kernels[i];
      kernel.a = {3}, kernel.threads = threads;
      TensorMap inputs;
      const Program program = plan_of(kernel, inputs);
      expect_same_run(program, inputs, {.threads = 1, .instruction_budget = kernel.budget},
                      fmt::format("kernel {} of {} threads", i, threads));
    }
}

/// Loads of shared memory from one place, in a row, anywhere, single and as vectors, behind a guarded move.
TEST(CompiledCode, SharedMemoryIsLoadedFromAnywhere) {
  NEEDS_AVX512();
  const std::string address[] = {"mov.u32 %r2, room;",
                                 "and.b32 %r2, %t, 31; shl.b32 %r2, %r2, 4; add.u32 %r2, %r2, room;",
                                 "and.b32 %r2, %a, 31; shl.b32 %r2, %r2, 4; add.u32 %r2, %r2, room;",
                                 "and.b32 %r2, %t, 31; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, room;"};
  const std::string loads[] = {"ld.shared.u32 %r3, [%r2+16];",
                               "ld.shared.v2.u32 {%r3, %r4}, [%r2+32];",
                               "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2+64];",
                               "ld.shared.u32 %r3, [%r2+900];",
                               "ld.shared.u32 %r3, [%r2+2];",
                               "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2+520];"};
  for (const std::string& place : address)
    for (const std::string& load : loads) {
      SmallKernel kernel{.declarations = ".shared .align 16 .b8 room[1024];\n"};
      kernel.body =
          "and.b32 %r9, %t, 31; shl.b32 %r9, %r9, 5; add.u32 %r9, %r9, room; mov.u32 %r4, 1; mov.u32 %r5, 2; "
          "mov.u32 %r6, 3;\n";
      for (int i = 0; i < 32; i += 4)
        kernel.body += fmt::format("mad.lo.u32 %r8, %t, 77, {0}; st.shared.u32 [%r9+{0}], %r8;\n", i);
      kernel.body += place + "setp.gt.u32 %p1, %a, 7; bar.sync 0; @%p1 mov.u32 %r3, 9;\n" + load +
                     "mad.lo.u32 %d, %r3, 3, %r4; mad.lo.u32 %d, %d, 5, %r5; mad.lo.u32 %d, %d, 7, %r6;";
      std::mt19937 random(5);
      for (int i = 0; i < 32; ++i) kernel.a.push_back(random());
      TensorMap inputs;
      const Program program = plan_of(kernel, inputs);
      expect_same_run(program, inputs, {.threads = 1}, place + load);
    }
}

/// A program that flushes is one whose host code keeps flushing between its pieces, and none that it calls.
TEST(CompiledCode, FlushesWhereTheInstructionSaysSo) {
  NEEDS_AVX512();
  const std::string flushing =
      "add.ftz.f32 %f1, %f1, %f1; mul.ftz.f32 %f2, %f1, %f1; add.ftz.f32 %f3, %f2, %f1;\n";
  SmallKernel kernel{
      .body = "mov.b32 %f1, %a; mov.b32 %f5, %b; mov.u32 %r1, 0;\nAGAIN:" + flushing +
              "add.f32 %f4, %f5, %f5; div.rn.f32 %f6, %f4, 0f40000000; setp.eq.f32 %p1, %f6, %f5;\n" +
              flushing +
              "setp.eq.ftz.f32 %p2, %f5, 0f00000000; ex2.approx.f32 %f7, %f5;\n"
              "add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 3; @%p3 bra AGAIN;\n"
              "selp.u32 %d, 1, 0, %p1; @%p2 add.u32 %d, %d, 2; mov.b32 %r2, %f4; xor.b32 %d, %d, %r2;"};
  kernel.a = {0x00400001}, kernel.b = {0x00300000};  // subnormals
  TensorMap inputs;
  const Program program = plan_of(kernel, inputs);
  expect_same_run(program, inputs, {.threads = 1}, text_of(kernel));
  EXPECT_EQ(words_of(run(program, inputs, {.threads = 1, .engine = ExecutedBy::compiled})).at(0),
            3u ^ 0x00600000u);
}

/// 1,023 warps are interpreted, 1,026 compiled, as is what is told to be.
TEST(CompiledCode, IsMadeWhereALaunchHasEnoughWarps) {
  NEEDS_AVX512();
  struct Told {
    ExecutedBy engine;
    uint32_t blocks;
    bool compiled;
  };
  for (const Told told : {Told{ExecutedBy::by_size, 341, false},
                          {ExecutedBy::by_size, 342, true},
                          {ExecutedBy::compiled, 1, true},
                          {ExecutedBy::interpreter, 342, false}}) {
    SmallKernel kernel{.body = "add.u32 %d, %a, %b;"};
    kernel.threads = 96, kernel.blocks = told.blocks;
    kernel.a = {1}, kernel.b = {2};
    TensorMap inputs;
    const Program program = plan_of(kernel, inputs);
    PreparedProgram prepared(program, inputs, {.engine = told.engine});
    EXPECT_EQ(prepared.enter(0).compiled != nullptr, told.compiled) << told.blocks;
  }
}

}  // namespace compiled_code_test
}  // namespace assay::vm
