// Calls in PTX as nvcc -G writes them, replaced by what they call.
#include "kernels/inline_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/base/ptx/inlined_frames.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

/// An entry that calls `twice(x)`, which calls `sum(x, x)` where x is not 0.
const std::string kCalls = R"(.version 9.0
.target sm_80
.address_size 64
	// .weak	sum
.weak .func  (.param .b32 func_retval0) sum
(
	.param .b32 sum_param_0,
	.param .b32 sum_param_1
)
;
.weak .func  (.param .b32 func_retval0) sum(
	.param .b32 sum_param_0,
	.param .b32 sum_param_1
)
{
	.reg .f32 	%f<4>;
	.loc	1 3 0
	ld.param.f32 	%f1, [sum_param_0];
	ld.param.f32 	%f2, [sum_param_1];
	.loc	1 4 5
	add.f32 	%f3, %f1, %f2;
	st.param.f32 	[func_retval0+0], %f3;
	ret;
$L__func_end0:
}
.weak .func  (.param .b32 func_retval0) twice(
	.param .b32 twice_param_0
)
{
	.local .align 8 .b8 	__local_depot1[24];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .pred 	%p<2>;
	.reg .f32 	%f<9>;
	mov.u64 	%SPL, __local_depot1;
	cvta.local.u64 	%SP, %SPL;
	ld.param.f32 	%f1, [twice_param_0];
	st.f32 	[%SP+0], %f1;
	setp.eq.f32 	%p1, %f1, 0f00000000;
	@%p1 ret;
	bra.uni 	$L__BB1_1;
$L__BB1_1:
	.loc	1 9 7
	{ // callseq 0, 0
	.reg .b32 temp_param_reg;
	.param .b32 param0;
	st.param.f32 	[param0+0], %f1;
	.param .b32 param1;
	st.param.f32 	[param1+0], %f1;
	.param .b32 retval0;
	call.uni (retval0), 
	sum, 
	(
	param0, 
	param1
	);
	ld.param.f32 	%f2, [retval0+0];
	} // callseq 0
	st.param.f32 	[func_retval0+0], %f2;
	ret;
}
.visible .entry kernel(
	.param .u64 kernel_param_0
)
{
	.local .align 8 .b8 	__local_depot2[4];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .f32 	%f<3>;
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<2>;
	mov.u64 	%SPL, __local_depot2;
	cvta.local.u64 	%SP, %SPL;
	ld.param.u64 	%rd1, [kernel_param_0];
	mov.u32 	%r1, %tid.x;
	ld.global.f32 	%f1, [%rd1];
	.loc	1 20 3
	{ // callseq 1, 0
	.reg .b32 temp_param_reg;
	.param .b32 param0;
	st.param.f32 	[param0+0], %f1;
	.param .b32 retval0;
	call.uni (retval0), 
	twice, 
	(
	param0
	);
	ld.param.f32 	%f2, [retval0+0];
	} // callseq 1
	st.global.f32 	[%rd1], %f2;
	ret;
}
	.file	1 "a.cu"
	.section	.debug_abbrev
	{
.b8 1
	}
)";

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(InlineCalls, BodiesStandWhereTheyWereCalled) {
  const ptx::Module module = ptx::parse(inline_calls(kCalls), "a.ptx");
  ASSERT_EQ(module.functions.size(), 1u);
  const std::vector<ptx::Instruction>& body = module.functions[0].body;
  const auto is = [](const char* opcode) {
    return [opcode](const ptx::Instruction& i) { return i.opcode == opcode; };
  };
  EXPECT_EQ(std::count_if(body.begin(), body.end(), is("call.uni")), 0);
  EXPECT_EQ(std::count_if(body.begin(), body.end(), is("ret")), 1);
  const auto sum = std::find_if(body.begin(), body.end(), is("add.f32"));
  ASSERT_NE(sum, body.end());
  EXPECT_EQ(ptx::inlined_frames(module, sum->line),
            (std::vector<std::string>{"a.cu:4", "a.cu:9", "a.cu:20"}));
}

/// Registers of each depth of calls, special ones as they are; one stack in which they follow each other.
TEST(InlineCalls, NamesAreOfTheirCall) {
  const std::string text = inline_calls(kCalls);
  EXPECT_EQ(count_of(text, ".reg .f32 %d2f<4>;"), 1u) << text;
  EXPECT_EQ(count_of(text, "add.f32 \t%d2f3, %d2f1, %d2f2;"), 1u) << text;
  EXPECT_EQ(count_of(text, "%tid.x"), 1u) << text;
  EXPECT_EQ(count_of(text, ".b8 __stack[40];"), 1u) << text;
  EXPECT_EQ(count_of(text, "add.u64 %d1SPL, %d1SPL, 16;"), 1u) << text;
  EXPECT_EQ(count_of(text, "section"), 0u) << text;
}

/// A function that is called twice has its static variable once.
TEST(InlineCalls, SharedMemoryOfAFunctionIsOneWhereverItIsCalled) {
  std::string text = kCalls;
  text.insert(text.find(".reg .f32 \t%f<4>;"), ".shared .align 4 .b8 kept[32];\n\t");
  const size_t first = text.find("{ // callseq 0, 0"), last = text.find("} // callseq 0") + 15;
  std::string again = text.substr(first, last - first);
  for (size_t at; (at = again.find("callseq 0")) != again.npos;) again[at + 8] = '2';
  text.insert(last, again);
  const std::string inlined = inline_calls(text);
  EXPECT_EQ(count_of(inlined, "add.f32"), 2u) << inlined;
  EXPECT_EQ(count_of(inlined, ".shared .align 4 .b8 kept[32];"), 1u) << inlined;
  EXPECT_LT(inlined.find(".shared"), inlined.find("add.f32"));
  EXPECT_EQ(ptx::parse(inlined, "a.ptx").functions.size(), 1u);
}

TEST(InlineCalls, AFunctionThatTheModuleLacksIsCalled) {
  std::string text = kCalls;
  for (size_t at; (at = text.find(".weak .func  (.param .b32 func_retval0) sum(")) != text.npos;)
    text.erase(at, text.find("}\n", at) + 2 - at);
  const std::string called = inline_calls(text);
  EXPECT_EQ(count_of(called, "call.uni (r1), sum"), 1u) << called;
  EXPECT_NO_THROW(ptx::parse(called, "a.ptx"));
}

}  // namespace
}  // namespace assay
