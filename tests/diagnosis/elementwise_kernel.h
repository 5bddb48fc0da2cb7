// A plan of one small PTX kernel over two fp32 inputs and one output, for the tests of this folder.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// One warp; thread t loads %x = x[t] and %y = y[t], runs `body` (registers %f<64>, %b<16> of 32 bits, %h<16>
/// of 16 bits, %p<8>, %d<8> of 64 bits; %t is the thread, `tile` 2 KiB of shared memory), then stores %r to
/// o[t].
inline Program elementwise_plan(const std::string& body) {
  const std::string ptx = R"(.version 7.1
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %x, %y, %r, %f<64>;
  .reg .b32 %t, %b<16>;
  .reg .b16 %h<16>;
  .reg .b64 %ax, %ay, %ao, %step, %d<8>;
  .reg .pred %p<8>;
  .shared .align 16 .b8 tile[2048];
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
)" + body + "\n  st.global.f32 [%ao], %r;\n  ret;\n}\n";
  Program plan;
  plan.name = "elementwise";
  plan.modules.push_back({"m", "elementwise.ptx", std::make_shared<const std::string>(ptx)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", 32}}});
  plan.launches.push_back({"m",
                           "kernel",
                           {1, 1, 1},
                           {32, 1, 1},
                           0,
                           {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return plan;
}

/// Inputs x and y filled with one value each; element 3 of x is `special`.
inline TensorMap elementwise_inputs(double x, double y, double special) {
  TensorMap inputs;
  for (const auto& [name, value] : {std::pair{"x", x}, std::pair{"y", y}}) {
    Tensor t(name, Dtype::fp32, {{"T", 32}});
    for (int64_t i = 0; i < t.size(); i++) t.set(i, value);
    inputs[name] = t;
  }
  inputs["x"].set(3, special);
  return inputs;
}

}  // namespace assay
