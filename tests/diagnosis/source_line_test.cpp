#include "src/verification/diagnosis/source_line.h"

#include <gtest/gtest.h>

#include "kernels/module_text.h"

namespace assay {
namespace {

// Line 3 of b.cuh is a function of one line, inlined at line 20 of a.cu; lines 8, 9, 10 of b.cuh make a
// function that a person would look into.
constexpr const char* kText = R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "src/a.cu"
.file 2 "src/b.cuh"
.visible .entry k(.param .u64 p)
{
.reg .pred %p<2>;
.reg .f32 %f<9>;
.reg .b32 %r<4>;
.reg .b64 %rd<2>;
.loc 1 10 1
ld.param.u64 %rd1, [p];
ld.global.f32 %f1, [%rd1+4];
.loc 2 3 1, function_name $wrapper, inlined_at 1 20 5
ex2.approx.f32 %f2, %f1;
.loc 2 8 1, function_name $body, inlined_at 1 30 5
mul.rn.f32 %f3, %f2, 0f3F000000;
.loc 2 9 1, function_name $body, inlined_at 1 30 5
add.rn.f32 %f4, %f3, %f1;
.loc 2 10 1, function_name $body, inlined_at 1 30 5
setp.gt.f32 %p1, %f4, 0f00000000;
selp.f32 %f5, 0f3F800000, 0f00000000, %p1;
selp.f32 %f6, %f4, 0f00000000, %p1;
cvt.rn.f32.s32 %f7, %r1;
fma.rn.f32 %f8, %f5, %f6, %f7;
.loc 1 40 1
st.global.f32 [%rd1], %f8;
ret;
}
)";

class SourceLine : public testing::Test {
 protected:
  ptx::Module module = ptx::parse(kText, "k.ptx");

  int32_t at(const std::string& opcode) const {
    const auto& body = module.functions[0].body;
    for (size_t i = 0; i < body.size(); ++i)
      if (body[i].opcode == opcode) return static_cast<int32_t>(i);
    ADD_FAILURE() << opcode;
    return -1;
  }
  std::string place(const std::string& opcode) const {
    const SourceLocation where = location_of(module, 0, at(opcode));
    return where.file + ":" + std::to_string(where.line);
  }
};

TEST_F(SourceLine, IsTheCallersOfAWrapperAndTheBodysOfAFunctionOfItsOwn) {
  EXPECT_EQ(place("ld.global.f32"), "src/a.cu:10");
  EXPECT_EQ(place("ex2.approx.f32"), "src/a.cu:20");
  EXPECT_EQ(place("add.rn.f32"), "src/b.cuh:9");
  EXPECT_EQ(location_of(module, 0, at("ex2.approx.f32")).ptx_line, 16);
  EXPECT_EQ(location_of(module, 0, -1).function, "k");
}

TEST_F(SourceLine, InstructionsAreSpeltAsInThePtx) {
  const ptx::Function& f = module.functions[0];
  EXPECT_EQ(instruction_text(f, f.body[at("ld.global.f32")]), "ld.global.f32 %f1, [%rd1+4]");
  EXPECT_EQ(instruction_text(f, f.body[at("mul.rn.f32")]), "mul.rn.f32 %f3, %f2, 0f3F000000");
}

TEST_F(SourceLine, DefinitionsComeNearestFirstAndOncePerLine) {
  const std::vector<ChainLink> links = definitions_before(module, 0, at("add.rn.f32"), 3, SourceText(""));
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0].instruction, "mul.rn.f32 %f3, %f2, 0f3F000000");
  EXPECT_EQ(links[1].instruction, "ld.global.f32 %f1, [%rd1+4]");
  EXPECT_EQ(links[2].instruction, "ex2.approx.f32 %f2, %f1");
  EXPECT_EQ(definitions_before(module, 0, at("add.rn.f32"), 1, SourceText("")).size(), 2u);
}

TEST_F(SourceLine, AMaskIsAChoiceBetweenLiteralsOrAnInteger) {
  const int32_t fma = at("fma.rn.f32");
  EXPECT_TRUE(made_by_selection(module.functions[0], fma, 1));
  EXPECT_FALSE(made_by_selection(module.functions[0], fma, 2)) << "a choice between a value and zero";
  EXPECT_TRUE(made_by_selection(module.functions[0], fma, 3));
  EXPECT_FALSE(made_by_selection(module.functions[0], fma, 9));
}

TEST(SourceText, GivesLinesOfOurKernelsTrimmedAndNothingBeyondTheirEnd) {
  const SourceText text("gla.chunk");
  for (const SourceFile& file : embedded_sources()) {
    const std::string first(file.text.substr(0, file.text.find('\n')));
    EXPECT_EQ(text.line({std::string(file.path), 1, 0, ""}), first.substr(first.find_first_not_of(' ')));
    EXPECT_EQ(text.line({std::string(file.path), 1000000, 0, ""}), "");
  }
  EXPECT_EQ(text.line({"no/such/file.cu", 1, 0, ""}), "");
  EXPECT_EQ(text.line({"", 1, 0, ""}), "");
}

TEST(Definitions, AreOfInstructionsThatWrite) {
  const ptx::Module module = ptx::parse(R"(.version 8.0
.target sm_90a
.address_size 64
.file 1 "src/a.cu"
.visible .entry k()
{
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
.reg .f32 %f<6>;
.reg .pred %p<2>;
.loc 1 1 1
mov.u32 %r1, 5;
.loc 1 2 1
TABLE: .branchtargets NEXT;
brx.idx %r1, TABLE;
NEXT:
.loc 1 3 1
mbarrier.init.shared.b64 [%r1], 1;
.loc 1 4 1
add.s32 %r2, %r1, 1;
.loc 1 5 1
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;
.loc 1 6 1
add.f32 %f5, %f2, %f2;
ret;
}
)",
                                        "k.ptx");
  const auto made_at = [&](int32_t instruction) {
    return definitions_before(module, 0, instruction, 1, SourceText("")).at(0).where.line;
  };
  EXPECT_EQ(made_at(3), 1) << "brx.idx and mbarrier.init read their register";
  EXPECT_EQ(made_at(5), 5) << "wgmma writes the registers of D";
}

}  // namespace
}  // namespace assay
