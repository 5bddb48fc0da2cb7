// A plan of two launches for the fake driver.
#pragma once
#include "src/base/program/program.h"

namespace assay {

inline const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 from, .param .u64 to, .param .u32 count, .param .f32 term) {
  .reg .f32 %f<3>;
  mul.f32 %f1, %f1, %f2;
  ret;
}
.visible .entry bad(.param .u64 from, .param .u64 to, .param .u32 count, .param .f32 term) { ret; }
.visible .entry crash(.param .u64 from, .param .u64 to, .param .u32 count, .param .f32 term) { ret; }
)";

inline Launch launch(const std::string& function, const std::string& from, const std::string& to) {
  return {.module = "m",
          .function = function,
          .grid = {1, 1, 1},
          .block = {32, 1, 1},
          .arguments = {PointerArgument{from}, PointerArgument{to, 4}, int32_t{2}, 0.5f}};
}

/// y[1..2] = constant + 0.5, z[1..2] = x + 0.5; the first element of each stays as it was filled.
inline Program small_program() {
  Program plan;
  plan.name = "test";
  plan.modules = {{"m", "test.ptx", std::make_shared<const std::string>(kPtx)}};
  plan.outputs = {
      {"y", Dtype::fp32, {{"T", 3}}}, {"z", Dtype::fp32, {{"T", 3}}}, {"empty", Dtype::fp32, {{"T", 0}}}};
  Tensor constant("c", Dtype::fp32, {{"T", 2}});
  constant.set(0, 10), constant.set(1, 20);
  plan.constants = {constant};
  plan.workspaces = {{"w", 100}};
  plan.launches = {launch("add", "c", "y"), launch("add", "x", "z")};
  return plan;
}

inline TensorMap small_inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 2}});
  x.set(0, 1), x.set(1, 2);
  return {{"x", x}};
}

}  // namespace assay
