// Views on the machine: what the copying launch copies, what the machine says about memory with gaps.
#include "kernels/views/gather_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/program/steps.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/value_slice.h"
#include "src/case/layouts.h"

namespace assay {
namespace views_gather_plan_test {

const Operator& merge() {
  return find_operator("merge_heads");
}

/// The copying launch alone: its workspace is the output.
Outcome copied(const Tensor& x, const TensorLayout& layout, const Program& with_copy) {
  Program plan;
  plan.name = "views";
  plan.modules = with_copy.modules;
  plan.outputs = {{"copy of x", x.dtype, x.axes}};
  plan.launches = {with_copy.launches.front()};
  plan.layouts = {{"x", layout}};
  return vm::run(plan, {{"x", x}}, {});
}

Case case_of(const std::string& layout, Dtype dtype, int64_t T, int64_t H, int64_t V) {
  Case c;
  c.kernel = "merge_heads.fused";
  c.B = 2, c.T = T, c.H = H, c.K = 4, c.V = V, c.dtype = dtype, c.layout = layout;
  return c;
}

TEST(Views, AreCopiedBitForBitWhateverTheirStridesAndWidths) {
  const char* const layouts[] = {"heads-first",
                                 "joined",
                                 "padded",
                                 "sliced",
                                 "transposed",
                                 "x=200000:2000:600:2",
                                 "x=3:100000:2000:7",
                                 "x=100000:1000:250:1"};
  const int64_t sizes[][3] = {{1, 1, 1}, {5, 3, 8}, {65, 2, 24}, {7, 3, 250}, {3, 1, 33}, {1, 2, 17}};
  for (const char* layout : layouts)
    for (const auto& [T, H, V] : sizes)
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
        const Case c = case_of(layout, dtype, T, H, V);
        TensorMap inputs = draw_inputs(c, merge());
        Tensor& x = inputs.at("x");
        for (int64_t i = 0; i < x.size(); ++i) x.set_bits(i, static_cast<uint64_t>(i * 0x10003 + 1) % 0xfff1);
        const auto view = resolve(c, merge()).inputs[0].layout;
        if (!view) continue;  // lies row by row at these sizes
        if (!stride_fault(x.axes, view->strides).empty()) continue;
        const Outcome outcome =
            copied(x, *view, program_with_views(find_kernel(c.kernel), resolve(c, merge()), inputs));
        ASSERT_FALSE(outcome.trap) << outcome.trap->message;
        EXPECT_EQ(outcome.outputs.at("copy of x").data, x.data) << token_of(c);
      }
}

/// Five axes: a launch for each index of the outermost that are more than four.
TEST(Views, OfFiveAxesAreCopiedToo) {
  const Operator& op = find_operator("gated_delta_product");
  for (const char* layout : {"k=30:400:5000:60000:1000000", "k=1000000:100000:2000:30:2", "sliced"}) {
    Case c;
    c.kernel = "gated_delta_product.fused_recurrent", c.layout = layout;
    c.B = 3, c.T = 7, c.M = 2, c.H = 3, c.K = 5, c.V = 4;
    const TensorMap inputs = draw_inputs(c, op);
    const Tensor& k = inputs.at("k");
    const ResolvedCase resolved = resolve(c, op);
    Program plan = program_with_views(find_kernel(c.kernel), resolved, inputs);
    std::erase_if(plan.launches,
                  [](const Launch& launch) { return !launch.function.starts_with("gather_"); });
    plan.outputs = {{"copy of k", k.dtype, k.axes}}, plan.constants.clear();
    std::erase_if(plan.workspaces, [](const Workspace& x) { return x.name == "copy of k"; });
    const Outcome outcome = vm::run(plan, inputs, {});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    EXPECT_EQ(outcome.outputs.at("copy of k").data, k.data) << layout;
  }
}

TEST(Views, OfDenseInputsThereAreNone) {
  const Case c = case_of("", Dtype::bf16, 5, 2, 8);
  const Kernel& kernel = find_kernel(c.kernel);
  const TensorMap inputs = draw_inputs(c, merge());
  EXPECT_EQ(program_with_views(kernel, resolve(c, merge()), inputs).launches.size(),
            kernel.plan(resolve_unchecked(c, merge()), inputs).launches.size());
  EXPECT_TRUE(program_with_views(kernel, resolve(c, merge()), inputs).layouts.empty());
}

TEST(Views, NoTokensNeedNoCopy) {
  const Case c = case_of("padded", Dtype::bf16, 0, 2, 8);
  const TensorMap inputs = draw_inputs(c, merge());
  const Outcome outcome =
      vm::run(program_with_views(find_kernel(c.kernel), resolve(c, merge()), inputs), inputs, {});
  EXPECT_FALSE(outcome.trap);
  EXPECT_EQ(outcome.outputs.at("y").size(), 0);
}

/// y = x, element by element of memory, whatever the axes.
Kernel copying_kernel(Dtype dtype, int64_t bytes) {
  Kernel kernel;
  kernel.name = "copying";
  kernel.plan = [=](const ResolvedCase& c, const TensorMap&) {
    Program program;
    program.name = "copying";
    std::vector<Axis> axes;
    for (const Axis& axis : c.inputs[0].shape.axes) axes.push_back(axis);
    program.outputs = {{"y", dtype, axes}};
    add_copy(program, {"x"}, {"y"}, bytes);
    return program;
  };
  return kernel;
}

TEST(Views, RowsOfAnotherOrderAreCopiedBeforeAndAfterAKernel) {
  for (const char* layout : {"", "heads-first", "x=200000:2000:600:2"})
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
      const Case c = case_of(layout, dtype, 5, 3, 7);
      const TensorMap inputs = draw_inputs(c, merge());
      const Tensor& x = inputs.at("x");
      const auto result = [&](std::map<std::string, std::vector<size_t>> orders) {
        Kernel kernel = copying_kernel(dtype, x.bytes());
        kernel.orders = std::move(orders);
        const Outcome outcome = vm::run(program_with_views(kernel, resolve(c, merge()), inputs), inputs, {});
        EXPECT_FALSE(outcome.trap) << outcome.trap->message;
        return outcome.outputs.at("y");
      };
      const std::vector<size_t> heads_first{0, 2, 1, 3}, turned{3, 0, 2, 1};
      EXPECT_EQ(result({{"x", heads_first}, {"y", heads_first}}).data, x.data) << token_of(c);
      EXPECT_EQ(result({{"x", turned}, {"y", turned}}).data, x.data) << token_of(c);
      // What the kernel takes for element `ours` is `theirs` where one side alone is turned.
      const Tensor read = result({{"x", heads_first}}), written = result({{"y", heads_first}});
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t h = 0; h < 3; ++h)
          for (int64_t t = 0; t < 5; ++t)
            for (int64_t v = 0; v < 7; ++v) {
              const int64_t theirs = ((b * 3 + h) * 5 + t) * 7 + v, ours = ((b * 5 + t) * 3 + h) * 7 + v;
              ASSERT_EQ(read.bits(theirs), x.bits(ours)) << token_of(c);
              ASSERT_EQ(written.bits(ours), x.bits(theirs)) << token_of(c);
            }
    }
}

TEST(Views, WhatAKernelLeavesOutOfItsOwnOrderIsNamedByTheOutputsIndices) {
  const Case c = case_of("", Dtype::fp32, 5, 3, 7);
  const TensorMap inputs = draw_inputs(c, merge());
  Kernel kernel = copying_kernel(Dtype::fp32, inputs.at("x").bytes() - 4);
  kernel.orders = {{"y", {0, 2, 1, 3}}};
  const CheckReport report =
      vm::run_checked(program_with_views(kernel, resolve(c, merge()), inputs), inputs, {}, {});
  ASSERT_FALSE(report.findings.empty());
  EXPECT_NE(report.findings[0].message.find("y[b=1,"), std::string::npos) << report.findings[0].message;
}

/// One thread, y[0] = the word `offset` elements behind x[0] of a view with rows of 4 in 6.
struct Reader {
  Program plan;
  TensorMap inputs;

  explicit Reader(int64_t offset) {
    static const char* const kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 px, .param .u64 py) {
  .reg .b64 %x, %y; .reg .f32 %f;
  ld.param.u64 %x, [px]; ld.param.u64 %y, [py];
  ld.global.f32 %f, [%x];
  st.global.f32 [%y], %f;
  ret;
}
)";
    Tensor x("x", Dtype::fp32, {{"T", 3}, {"K", 4}});
    for (int64_t i = 0; i < 12; ++i) x.set(i, static_cast<double>(i));
    plan.name = "reader";
    plan.modules = {{"m", "read.ptx", std::make_shared<const std::string>(kPtx)}};
    plan.outputs = {{"y", Dtype::fp32, {{"T", 1}}}};
    TensorLayout layout = layout_of_strides(x.axes, {6, 1});
    layout.offset = 2, layout.elements = 20;
    plan.layouts = {{"x", layout}};
    plan.launches = {{.module = "m",
                      .function = "read",
                      .arguments = {PointerArgument{"x", 4 * offset}, PointerArgument{"y"}}}};
    inputs = {{"x", x}};
  }
};

TEST(Views, ElementsAreFoundAndNamedByTheirOwnIndices) {
  const Reader reader(6 + 3);
  EXPECT_EQ(vm::run(reader.plan, reader.inputs, {}).outputs.at("y").value(0), 7);
  const vm::ValueSlice slice = vm::slice_value(reader.plan, reader.inputs, {}, "y", 0);
  EXPECT_EQ(slice.inputs, std::vector<int64_t>{7});
  vm::Recording recording;
  vm::run_recorded(reader.plan, reader.inputs, {}, &recording);
  const vm::Carrier carrier = recording.carrier("y", 0);
  ASSERT_EQ(carrier.inputs.size(), 1u);
  EXPECT_EQ(carrier.inputs[0], 7);
}

TEST(Views, AGapReadIntoAResultIsFound) {
  const Reader reader(4);
  EXPECT_TRUE(std::isnan(vm::run(reader.plan, reader.inputs, {}).outputs.at("y").value(0)));
  const CheckReport report = vm::run_checked(reader.plan, reader.inputs, {}, {});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, CheckKind::unwritten_output);
  EXPECT_NE(report.findings[0].message.find("depend on a gap of x, 1 elements behind x[t=0,k=3]"),
            std::string::npos)
      << report.findings[0].message;
  EXPECT_TRUE(vm::slice_value(reader.plan, reader.inputs, {}, "y", 0).unwritten);
  EXPECT_TRUE(vm::run_checked(Reader(3).plan, reader.inputs, {}, {}).findings.empty());
}

TEST(Views, LeavingTheMemoryBehindAViewIsATrap) {
  EXPECT_FALSE(vm::run(Reader(17).plan, Reader(17).inputs, {}).trap);
  const auto trap = vm::run(Reader(18).plan, Reader(18).inputs, {}).trap;
  ASSERT_TRUE(trap);
  EXPECT_EQ(trap->kind, TrapKind::out_of_bounds);
  EXPECT_NE(trap->message.find("0 bytes past the end of x [T=3,K=4]"), std::string::npos) << trap->message;
}

}  // namespace views_gather_plan_test
}  // namespace assay
