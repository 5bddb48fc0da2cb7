// Outputs on real numbers while inputs are moved, on programs of a few instructions.
#include "src/base/vm/moved_run.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace {

/// One thread: o[0] = x[0] * x[1], rounded to bf16; o[1] = y[1], a bf16.
Program product() {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %a, %b, %r;
  .reg .b32 %w;
  .reg .b16 %h;
  .reg .b64 %x, %y, %o;
  ld.param.u64 %x, [px];
  ld.param.u64 %y, [py];
  ld.param.u64 %o, [po];
  ld.global.f32 %a, [%x];
  ld.global.f32 %b, [%x+4];
  mul.rn.f32 %r, %a, %b;
  cvt.rn.bf16.f32 %h, %r;
  mov.b32 %w, {0, %h};
  st.global.b32 [%o], %w;
  ld.global.b16 %h, [%y+2];
  mov.b32 %w, {0, %h};
  st.global.b32 [%o+4], %w;
  ret;
}
)";
  Program program;
  program.name = "product";
  program.modules.push_back({"m", "product.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 2}}});
  program.launches.push_back({"m",
                              "kernel",
                              {1, 1, 1},
                              {1, 1, 1},
                              0,
                              {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return program;
}

TensorMap product_inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 2}}), y("y", Dtype::bf16, {{"T", 2}});
  x.set(0, 1.5), x.set(1, 0x1.02p+0), y.set(0, 3), y.set(1, 5);
  return {{"x", x}, {"y", y}};
}

TEST(MovedRun, WithoutMovesTheOutputsAreExact) {
  const RealOutputs o = run_moved(product(), product_inputs(), {}, {});
  EXPECT_EQ(o.at("o"), (std::vector<double>{1.5 * 0x1.02p+0, 5}));
}

/// By less than any format of the program holds.
TEST(MovedRun, AMoveGoesThroughRoundingsUnrounded) {
  const RealOutputs o =
      run_moved(product(), product_inputs(), {{"x", {{0, 0x1p-30}}}, {"y", {{0, 0.5}, {1, -0x1p-20}}}}, {});
  EXPECT_EQ(o.at("o"), (std::vector<double>{(1.5 + 0x1p-30) * 0x1.02p+0, 5 - 0x1p-20}));
}

TEST(MovedRun, AViewIsMovedAtTheElementsPlace) {
  Program program = product();
  program.layouts["x"] = {{2}, {1}, 2, 5};
  program.layouts["y"] = {{2}, {1}, 1, 3};
  const RealOutputs o = run_moved(program, product_inputs(), {{"x", {{1, 1}}}}, {});
  EXPECT_EQ(o.at("o")[0], 1.5 * (1 + 0x1.02p+0));
}

}  // namespace
/// e^x as libraries make it: x / ln 2 rounded by adding 1.5 * 2^23, whose last bits are the exponent. Here
/// that number comes from memory, as an argument of a call that is not inlined does; the bits are counted up
/// in two steps.
TEST(MovedRun, WhatIsRoundedToAnIntegerByANumberOfMemoryIsAChoice) {
  Program program = product();
  std::string text = *program.modules[0].ptx;
  const size_t from = text.find("  mul.rn.f32 %r"), to = text.find("  st.global.b32 [%o], %w");
  text.replace(from, to - from, R"(  fma.rn.f32 %r, %a, 0f3FB8AA3B, %b;
  mov.b32 %w, %r;
  sub.rn.f32 %r, %r, %b;
  fma.rn.f32 %r, %r, 0fBF317218, %a;
  fma.rn.f32 %r, %r, 0f3F000000, 0f3F800000;
  add.s32 %w, %w, 64;
  add.s32 %w, %w, 63;
  shl.b32 %w, %w, 23;
  mov.b32 %a, %w;
  mul.rn.f32 %r, %r, %a;
  mov.b32 %w, %r;
)");
  program.modules[0].ptx = std::make_shared<const std::string>(text);
  TensorMap inputs = product_inputs();
  inputs.at("x").set(0, -3.0), inputs.at("x").set(1, 0x1.8p23);
  const double n = -4, rest = -3.0 + n * double{-0x1.62e43p-1f};
  EXPECT_NEAR(run_moved(program, inputs, {}, {}).at("o")[0], (1 + 0.5 * rest) * 0x1p-4, 0x1p-40);
}

}  // namespace assay::vm
