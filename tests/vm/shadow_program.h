// Small programs that are followed by their shadows: one warp a block on two inputs.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "src/base/vm/shadow_run.h"

namespace assay::vm::shadow_program {

/// One warp, thread t with %x = x[t], %y = y[t] (f32, exact inputs); `body` leaves %r, stored to o[t]. `.loc`
/// lines count from 1 in "k.cu"; the loads stand on line 90, the store on 91.
inline Program plan_of(const std::string& body, uint32_t blocks = 1) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %x, %y, %r, %f<64>;
  .reg .f64 %fd<16>;
  .reg .b32 %t, %c, %n, %b<16>;
  .reg .b16 %h<16>;
  .reg .b64 %ax, %ay, %ao, %step, %d<8>;
  .reg .pred %p<8>;
  .shared .align 16 .b8 tile[2048];
  .loc 1 90 0
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %n, %c, 32, %t;
  mul.wide.u32 %step, %n, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
)" + body + "\n  .loc 1 91 0\n  st.global.f32 [%ao], %r;\n  ret;\n}\n.file 1 \"k.cu\"\n";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", 32 * int64_t{blocks}}}});
  plan.launches.push_back({"m",
                           "kernel",
                           {blocks, 1, 1},
                           {32, 1, 1},
                           0,
                           {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return plan;
}

inline TensorMap inputs_of(const std::function<double(int64_t)>& x, const std::function<double(int64_t)>& y,
                           int64_t count = 32) {
  TensorMap inputs;
  for (const auto& [name, value] : {std::pair{"x", x}, std::pair{"y", y}}) {
    Tensor t(name, Dtype::fp32, {{"T", count}});
    for (int64_t i = 0; i < count; ++i) t.set(i, value(i));
    inputs[name] = t;
  }
  return inputs;
}

inline ShadowReport shadow_of(const std::string& body, double x, double y) {
  const TensorMap inputs = inputs_of([x](int64_t) { return x; }, [y](int64_t) { return y; });
  return run_shadow(plan_of(body), inputs, {"sm_90", 1, 0}, {.by_line = false});
}

}  // namespace assay::vm::shadow_program
