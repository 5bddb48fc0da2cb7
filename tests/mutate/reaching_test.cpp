// Which writes a read can see, along the ways through a function.
#include "src/campaign/mutate/reaching.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/campaign/mutate/value_range.h"
#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// PTX lines of the writes of %r1 that the last instruction before the label $L_end can see; "entry": none on
/// some way. The body begins on line 7.
std::string seen_at_end(const std::string& body) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  int32_t r1 = -1;
  for (size_t i = 0; i < f.registers.size(); ++i)
    if (f.registers[i].name == "%r1") r1 = static_cast<int32_t>(i);
  ValueRanges ranges(f, {});
  const auto writes = reaching_writes(ranges, static_cast<int32_t>(f.body.size()) - 2, r1);
  if (!writes) return "entry";
  std::set<int32_t> lines;
  for (const int32_t write : *writes) lines.insert(f.body[static_cast<size_t>(write)].ptx_line);
  std::string all;
  for (const int32_t line : lines) all += std::to_string(line) + " ";
  return all;
}

TEST(ReachingWrites, AreThoseThatNoOtherWriteFollows) {
  const std::string read = "\nst.global.u32 [%rd1], %r1;";
  const struct {
    std::string body;
    const char* lines;
  } rows[] = {
      {"mov.u32 %r1, 1;\nmov.u32 %r1, 2;" + read, "8 "},
      {"mov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;" + read, "7 8 "},
      {"mov.u32 %r1, 1;\n@%p1 bra $L_a;\nmov.u32 %r1, 2;\n$L_a:" + read, "7 9 "},
      {"mov.u32 %r1, 1;\n@%p1 bra $L_a;\nmov.u32 %r1, 2;\nbra $L_end;\n$L_a:" + read, "7 "},
      {"@%p1 bra $L_a;\nmov.u32 %r1, 2;\n$L_a:" + read, "entry"},
      {"mov.u32 %r1, 1;\n$L_a:\nst.global.u32 [%rd1], %r1;\nmov.u32 %r1, 2;\n@%p1 bra $L_a;" + read, "10 "},
      {"mov.u32 %r1, 1;\nld.global.v2.u32 {%r1, %r2}, [%rd1];" + read, "8 "},
  };
  for (const auto& row : rows) EXPECT_EQ(seen_at_end(row.body), row.lines) << row.body;
}

TEST(ReachingWrites, OfTensorCoresAreTheRegistersOfD) {
  const ptx::MutableText text = small_program(
      "mov.f32 %f1, 0f00000000;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n"
      "st.global.f32 [%rd3], %f1;");
  const ptx::Function& f = text.module().functions[0];
  ValueRanges ranges(f, {});
  EXPECT_EQ(reaching_writes(ranges, 2, f.body[2].operands[1].reg), (std::vector<int32_t>{1}));
}

}  // namespace
}  // namespace assay
