// Programs of a few instructions, run exactly: for tests of what such a run gives.
#pragma once
#include <memory>
#include <string>

#include "src/base/vm/exact_run.h"

namespace assay::vm {

/// One warp: thread t has %x = x[t], an exact input, and the argument %s; `body` leaves %r, stored to o[t].
inline Program program_of(const std::string& body, float argument = 1) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po, .param .f32 ps) {
  .reg .f32 %x, %s, %r, %f<16>;
  .reg .b32 %t, %b<16>;
  .reg .b16 %h<8>;
  .reg .b64 %ax, %ao, %step;
  .reg .pred %p<4>;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  ld.param.f32 %s, [ps];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
)" + body + "\n  st.global.f32 [%ao], %r;\n  ret;\n}\n";
  Program program;
  program.name = "small";
  program.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 32}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {32, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}, argument}});
  return program;
}

/// x[t] = 1 + 0.37 t, rounded to f32.
inline TensorMap inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 32}});
  for (int64_t t = 0; t < 32; ++t) x.set(t, static_cast<float>(1 + 0.37 * static_cast<double>(t)));
  return {{"x", x}};
}

inline ExactRun run_of(const Program& program) {
  return run_exact(program, inputs(), {});
}
inline ExactOutput exact_of(const Program& program) {
  return run_of(program).outputs.at("o");
}

}  // namespace assay::vm
