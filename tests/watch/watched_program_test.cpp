#include "src/base/watch/watched_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/vm/small_kernel.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace watched_program_test {

uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

TracedAndNoted of_body(const std::string& body, std::vector<uint32_t> a, std::vector<uint32_t> b) {
  a.resize(32, bits(1)), b.resize(32, bits(1));
  TensorMap inputs;
  const Program program = vm::plan_of({.body = body, .a = std::move(a), .b = std::move(b)}, inputs);
  return traced_and_noted(program, inputs);
}

TEST(WatchedProgram, NotesWhatTheTraceSees) {
  const float inf = INFINITY, nan = NAN;
  struct Row {
    const char* body;
    float a, b;
  };
  const Row rows[] = {
      {"sub.rn.f32 %d, %a, %b;", inf, inf},
      {"sub.rn.f32 %d, %a, %b;", nan, 1},
      {"add.rn.f32 %d, %a, %b;", inf, 1},
      {"mul.rn.f32 %d, %a, %b;", 0, inf},
      {"mul.rn.f32 %d, %a, %b;", 2e38f, 2},
      {"div.rn.f32 %d, %a, %b;", 1, 0},
      {"div.rn.f32 %d, %a, %b;", 0, 0},
      {"rcp.approx.f32 %d, %a;", 0, 1},
      {"lg2.approx.f32 %d, %a;", 0, 1},
      {"lg2.approx.f32 %d, %a;", -1, 1},
      {"ex2.approx.f32 %d, %a;", 200, 1},
      {"rsqrt.approx.f32 %d, %a;", -1, 1},
      {"sqrt.rn.f32 %d, %a;", -1, 1},
      {"cvt.rn.f16.f32 %h0, %a; cvt.u32.u16 %d, %h0;", 1e6f, 1},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", 1, 1e6f},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", 1e6f, nan},
      {"cvt.rn.bf16x2.f32 %d, %a, %b;", 3.4e38f, 1},
      {"add.rn.f32 %d, %a, %b;", 1, 2},
      // An infinity that a division hides, a NaN of it beside, both in one segment.
      {"mul.rn.f32 %f0, %a, %a; rcp.approx.f32 %f1, %f0; sub.rn.f32 %f2, %f0, %f0; mov.b32 %d, %f1;", 1e30f,
       1},
      // In place, and under a guard that holds for some lanes.
      {"mul.rn.f32 %a, %a, %a; setp.gt.f32 %p0, %b, 0f3F800000; @%p0 mul.rn.f32 %a, %a, %b; mov.b32 %d, %a;",
       1.5e19f, 4},
      {"setp.gt.f32 %p0, %b, 0f3F800000; @!%p0 mul.rn.f32 %a, %a, %a; mov.b32 %d, %a;", 1.5e30f, 4},
      {"cvt.f64.f32 %fd0, %a; mul.rn.f64 %fd0, %fd0, %fd0; mul.rn.f64 %fd1, %fd0, %fd0; mul.rn.f64 %fd1, "
       "%fd1, "
       "%fd1; mul.rn.f64 %fd1, %fd1, %fd1; cvt.rn.f32.f64 %d, %fd1;",
       1e38f, 1},
  };
  for (const Row& row : rows) {
    const TracedAndNoted s = of_body(row.body, {bits(row.a)}, {bits(row.b)});
    EXPECT_TRUE(s.same_outputs && s.same_trap) << row.body << s.text;
    EXPECT_EQ(s.traced, s.noted) << row.body << " of " << row.a << ", " << row.b << s.text;
  }
}

WatchedText of_text(const std::string& body, const WatchOptions& options, const char* version = "8.7") {
  const std::string text = std::string("// a comment with .version 1.0\n.version ") + version +
                           "\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<4>;\n" +
                           body + "ret;\n}\n";
  return rewritten(text, ptx::parse(text, "f.ptx"), options);
}

// Compilers set labels for line tables around every inlined call.
TEST(WatchedProgram, LabelsWhereNoBranchLeadsEndNoSegment) {
  const std::string one = "mul.rn.f32 %f1, %f0, %f0;\n", two = "mul.rn.f32 %f2, %f1, %f0;\n";
  const WatchedText plain = of_text(one + two, {}), labelled = of_text(one + "$L__tmp1:\n" + two, {}),
                    entered = of_text(one + "$again:\n" + two + "bra $again;\n", {});
  EXPECT_EQ(labelled.counts.added, plain.counts.added);
  EXPECT_GT(entered.counts.added, plain.counts.added);
}

// A chain's last sum tells of all before it: one test, and the chain once more where it is not finite.
TEST(WatchedProgram, LongStretchesAreTestedOnceAndGoneThroughAgain) {
  std::string chain = ".reg .f32 %c<201>; mul.rn.f32 %c0, %a, %b;\n";
  for (int i = 0; i < 200; ++i) chain += fmt::format("$L{0}:\nfma.rn.f32 %c{1}, %b, %a, %c{0};\n", i, i + 1);
  const std::string body = chain + "mov.b32 %d, %c200;";
  for (const float a : {1.0f, 3e37f, INFINITY, -2e38f}) {
    const TracedAndNoted s = of_body(body, {bits(a)}, {bits(2)});
    EXPECT_TRUE(s.same_outputs && s.same_trap);
    EXPECT_EQ(s.traced, s.noted) << a;
    EXPECT_LT(s.counts.added, 10);
  }
  EXPECT_EQ(of_body(body, {bits(3e37f)}, {bits(2)}).noted.size(), 1u);
}

TEST(WatchedProgram, ColdCodeIsMarkedForCompilersThatKnowIt) {
  const std::string body = "mul.rn.f32 %f1, %f0, %f0;\n";
  WatchOptions cold;
  cold.marks_cold_code = true;
  const auto without = [](std::string text, const std::string& piece) {
    for (size_t at; (at = text.find(piece)) != text.npos;) text.erase(at, piece.size());
    return text;
  };
  const std::string aside = "\t.pragma \"frequency 1\";\n", back = "\t.pragma \"frequency 1000000\";\n";
  for (const char* version : {"7.0", "8.7", "9.0", "9.4"}) {
    const std::string made = of_text(body, cold, version).ptx, plain = of_text(body, {}, version).ptx;
    EXPECT_NE(made.find("_born:\n" + aside), made.npos) << made;
    EXPECT_NE(made.find("_back:\n" + back), made.npos) << made;
    const std::string expected = std::string(version) < "9" ? "9.0" : version;
    EXPECT_NE(made.find("\n.version " + expected + "\n"), made.npos) << made;
    std::string same = without(without(made, aside), back);
    same.replace(same.find("\n.version "), 10 + expected.size(), "\n.version " + std::string(version));
    EXPECT_EQ(same, plain);
  }
  EXPECT_EQ(of_text(body, cold, "6.5").ptx, of_text(body, {}, "6.5").ptx);
}

TEST(WatchedProgram, LongEntriesAskForRegisters) {
  WatchOptions cold;
  cold.marks_cold_code = true;
  const auto made = [&](const std::string& directives, const WatchOptions& options) {
    const std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n" +
                             directives + "{\n.reg .f32 %f<2>;\nmul.rn.f32 %f1, %f0, %f0;\nret;\n}\n";
    return rewritten(text, ptx::parse(text, "f.ptx"), options).ptx;
  };
  EXPECT_NE(made(".reqntid 64\n", cold).find(".reqntid 64\n.minnctapersm 1\n{"), std::string::npos);
  for (const std::string directives : {"", ".reqntid 64\n.minnctapersm 2\n", ".maxntid 64\n.maxnreg 80\n"})
    EXPECT_EQ(made(directives, cold).find(".minnctapersm 1"), std::string::npos) << directives;
  EXPECT_EQ(made(".reqntid 64\n", {}).find(".minnctapersm"), std::string::npos);
}

// 65536 registers of a multiprocessor, half of the blocks that the text as it is would have there.
TEST(WatchedProgram, EntriesWhoseRegistersAreKnownLeaveRoomForHalfTheBlocks) {
  WatchOptions cold;
  cold.marks_cold_code = true;
  const auto directive = [&](const std::string& block, int registers) {
    const std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n" + block +
                             "{\n.reg .f32 %f<2>;\nmul.rn.f32 %f1, %f0, %f0;\nret;\n}\n";
    cold.own_registers = registers;
    const std::string made = rewritten(text, ptx::parse(text, "f.ptx"), cold).ptx;
    const size_t at = made.find(block) + block.size();
    return made.substr(at, made.find("{") - at);
  };
  EXPECT_EQ(directive(".reqntid 128\n", 64), ".maxnreg 128\n");  // 8 blocks, 4
  EXPECT_EQ(directive(".reqntid 128\n", 70), ".maxnreg 128\n");  // 7 blocks, 4
  EXPECT_EQ(directive(".maxntid 128\n", 93), ".maxnreg 168\n");  // 5 blocks, 3
  EXPECT_EQ(directive(".reqntid 128\n", 16), ".maxnreg 64\n");   // 16 blocks by its 2048 threads, 8
  EXPECT_EQ(directive(".reqntid 32\n", 16), ".maxnreg 128\n");   // 32 blocks, 16
  EXPECT_EQ(directive(".reqntid 128\n", 182), ".minnctapersm 1\n");
  EXPECT_EQ(directive(".reqntid 1024\n", 64), ".maxnreg 64\n");
  EXPECT_EQ(directive(".reqntid 128\n", 0), ".minnctapersm 1\n");
}

// Whatever it is launched with: 1024 threads have 64 registers each at most.
TEST(WatchedProgram, EntriesOfAnyBlockFitTheBlocksTheyFitted) {
  WatchOptions cold;
  cold.marks_cold_code = true;
  const auto directive = [&](int registers) {
    const std::string text =
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<2>;\n"
        "mul.rn.f32 %f1, %f0, %f0;\nret;\n}\n";
    cold.registers_of_entries = {{"f", registers}, {"g", 8}};
    const std::string made = rewritten(text, ptx::parse(text, "f.ptx"), cold).ptx;
    const size_t at = made.find("f()\n") + 4;
    return made.substr(at, made.find("{") - at);
  };
  EXPECT_EQ(directive(25), ".maxnreg 40\n");    // three quarters of 2048 threads
  EXPECT_EQ(directive(64), ".maxnreg 64\n");    // 1024 threads
  EXPECT_EQ(directive(100), ".maxnreg 104\n");  // 630 threads
  EXPECT_EQ(directive(255), "");
  EXPECT_EQ(directive(0), "");
}

// Rows are masked by -infinity, whose exponential is 0, and largest elements begin as it: nothing is born
// there, and no lane looks at each instruction for it.
TEST(WatchedProgram, InfinitiesOfMasksThatExponentialsTakeAreToldFromBirths) {
  const std::string scaled =
      "sub.rn.f32 %f0, %a, %b; mul.rn.f32 %f1, %f0, 0f3FB8AA3B; ex2.approx.f32 %d, %f1;";
  const std::string bodies[] = {
      scaled,
      "fma.rn.f32 %f0, %a, 0f3E38AA3B, %b; ex2.approx.ftz.f32 %f1, %f0; add.rn.f32 %d, %f1, %b;",
      // CUDA's expf
      "sub.rn.f32 %f0, %a, %b; fma.rn.sat.f32 %f1, %f0, 0f3BBB989D, 0f3F000000; fma.rm.f32 %f2, %f1, "
      "0f437C0000, 0f4B400001; sub.rn.f32 %f3, %f2, 0f4B40007F; neg.f32 %f3, %f3; fma.rn.f32 %f4, %f0, "
      "0f3FB8AA3B, %f3; fma.rn.f32 %f5, %f0, 0f32A57060, %f4; ex2.approx.ftz.f32 %d, %f5;",
      // What is subtracted is born, and hidden by a mask; what is masked is born; a sign is turned.
      "mul.rn.f32 %f0, %b, %b; sub.rn.f32 %f1, %a, %f0; ex2.approx.f32 %d, %f1;",
      "rcp.approx.f32 %f0, %a; mul.rn.f32 %f1, %f0, %b; ex2.approx.f32 %d, %f1;",
      "lg2.approx.f32 %f0, %a; ex2.approx.f32 %d, %f0;",
      "sub.rn.f32 %f0, %a, %b; neg.f32 %f0, %f0; ex2.approx.f32 %d, %f0;",
      "sub.rn.f32 %a, %a, %b; mul.rn.f32 %a, %a, 0f3FB8AA3B; ex2.approx.f32 %d, %a;",
      "sub.rn.f32 %f0, %a, %b; mul.rn.f32 %f1, %f0, %f0; sub.rn.f32 %f1, %f0, %f1; ex2.approx.f32 %d, %f1;",
      "setp.gt.f32 %p0, %b, 0f3F800000; mov.b32 %f0, 0; @%p0 sub.rn.f32 %f0, %a, %b; ex2.approx.f32 %d, "
      "%f0;",
      // None is taken here: whether it is, another stretch knows.
      "sub.rn.f32 %d, %a, %b;",
      "sub.rn.f32 %f0, %a, %b; mul.rn.f32 %d, %f0, 0f3FB8AA3B;",
      "mul.rn.f32 %f0, %b, %b; sub.rn.f32 %d, %a, %f0;",
      "mul.rn.f32 %f0, %b, %b; fma.rn.f32 %f1, %a, %b, %f0; sub.rn.f32 %d, %f1, %f0;",
      "sub.rn.f32 %f0, %a, %b; fma.rn.f32 %d, %f0, %b, %f0;",
      "div.rn.f32 %f0, %a, %b; sub.rn.f32 %d, %f0, %b;",
  };
  const float values[] = {0, -0.0f, 2, -INFINITY, INFINITY, NAN, 3e38f, -3e38f};
  for (const std::string& body : bodies)
    for (const float a : values)
      for (const float b : values) {
        const TracedAndNoted s = of_body(body, {bits(a)}, {bits(b)});
        EXPECT_TRUE(s.same_outputs && s.same_trap) << body << s.text;
        EXPECT_EQ(s.traced, s.noted) << body << " of " << a << ", " << b << s.text;
      }
  for (const std::string& body :
       {scaled, std::string("sub.rn.f32 %f0, %a, %b; mul.rn.f32 %d, %f0, 0f3F000000;")}) {
    const double finite = of_body(body, {bits(2)}, {bits(2)}).added,
                 masked = of_body(body, {bits(-INFINITY)}, {bits(2)}).added,
                 overflows = of_body(body, {bits(-3e38f)}, {bits(3e38f)}).added;
    EXPECT_LT(masked - finite, (overflows - finite) / 2) << finite << " " << masked << " " << overflows;
  }
}

// What a product adds to in place is known not to be finite, too, where it is an infinity of a mask: the
// product's sum, which is infinite as well, was not born there.
TEST(WatchedProgram, InfinitiesOfMasksThatProductsAddToAreNoBirthsOfTheirSums) {
  const std::string begin =
                        "mov.b32 %r0, 0x3F803F80; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; "
                        "setp.eq.f32 %p0, %a, %a;\n",
                    product =
                        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, "
                        "{%r0, %r0}, {%r0}, {%f0, %f1, %f2, %f3};\n"
                        "add.rn.f32 %d, %f0, %f4;";
  const std::string masked[] = {
      "sub.rn.f32 %f0, %a, %b; ex2.approx.f32 %f4, %f0;\n",
      "sub.rn.f32 %f0, %a, %b; mul.rn.f32 %f5, %f0, 0f3FB8AA3B; ex2.approx.f32 %f4, %f5;\n",
      "mul.rn.f32 %f5, %a, %b; sub.rn.f32 %f0, %f5, %b; mov.b32 %f4, 0;\n",
  };
  for (const std::string& body : masked)
    for (const float a : {2.0f, -INFINITY, INFINITY, NAN, -3e38f}) {
      const TracedAndNoted s = of_body(begin + body + product, std::vector(32, bits(a)), {bits(3)});
      EXPECT_TRUE(s.same_outputs && s.same_trap) << body << s.text;
      EXPECT_EQ(s.traced, s.noted) << body << " of " << a << s.text;
    }
}

// A block of 1024 threads has 64 registers a thread: what tests keep beyond them would be spilled on the way.
TEST(WatchedProgram, EntriesWithoutRegistersToSpareAreTestedMoreOften) {
  WatchOptions cold;
  cold.marks_cold_code = true;
  const auto added = [&](const std::string& directives, int own) {
    std::string body;
    for (int i = 1; i < 31; ++i) body += fmt::format("rcp.approx.f32 %f{}, %f0; bar.warp.sync -1;\n", i);
    const std::string text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n" +
                             directives + "{\n.reg .f32 %f<32>;\n" + body + "ret;\n}\n";
    cold.own_registers = own;
    return rewritten(text, ptx::parse(text, "f.ptx"), cold).counts.added;
  };
  const int64_t spare = added(".reqntid 1024\n", 24), few = added(".reqntid 1024\n", 60);
  EXPECT_GT(few, spare);
  EXPECT_EQ(added(".maxntid 512\n.minnctapersm 2\n", 60), few);
  EXPECT_EQ(added(".maxntid 512\n.minnctapersm 1\n", 60), spare);
  EXPECT_EQ(added(".reqntid 1024\n", 0), spare);
  // One of many registers and some to spare has few places where it holds them all.
  EXPECT_EQ(added(".reqntid 128\n", 240), spare);
  EXPECT_EQ(added(".reqntid 128\n", 255), few);
}

TEST(WatchedProgram, OldTextIsLeftAsItIs) {
  const std::string text =
      ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<2>;\nadd.f32 %f1, "
      "%f0, "
      "%f0;\nret;\n}\n";
  const WatchedText made = rewritten(text, ptx::parse(text, "old.ptx"), {});
  EXPECT_EQ(made.ptx, text);
  ASSERT_EQ(made.unwatched.size(), 1u);
  EXPECT_EQ(made.unwatched[0], "old.ptx: PTX 6.0 for sm_60; the watch needs 6.3 and sm_70");
}

}  // namespace watched_program_test
}  // namespace assay::watch
