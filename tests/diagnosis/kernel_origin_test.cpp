// The recording machine under the real kernels: cp.async, ldmatrix, tensor cores, workspaces between
// launches.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {
namespace {

struct Prepared {
  Case case_;
  TensorMap inputs;
  Program plan;
};

Prepared prepare(const std::string& kernel, Dtype dtype) {
  Prepared r;
  r.case_.kernel = kernel;
  r.case_.T = 100;
  r.case_.K = 24;
  r.case_.V = 20;
  r.case_.dtype = dtype;
  r.case_.initial_state = true;
  const Kernel& k = find_kernel(kernel);
  const Operator& op = find_operator(k.operator_name);
  r.inputs = draw_inputs(r.case_, op);
  r.plan = k.plan(resolve_unchecked(r.case_, op), r.inputs);
  return r;
}

const char* const kKernels[] = {"gla.chunk", "gla.fused_recurrent"};

TEST(KernelOrigin, ARecordedRunHasTheBitsOfAPlainRun) {
  for (const char* kernel : kKernels)
    for (Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
      const Prepared r = prepare(kernel, dtype);
      vm::Recording recording;
      const Outcome plain = vm::run(r.plan, r.inputs, {}),
                    recorded = vm::run_recorded(r.plan, r.inputs, {}, &recording);
      for (const auto& [name, tensor] : plain.outputs)
        EXPECT_EQ(tensor.data, recorded.outputs.at(name).data) << kernel << " " << name;
      EXPECT_EQ(recording.event_count, 0) << kernel << ": a run without a non-finite value logs nothing";
    }
}

TEST(KernelOrigin, APoisonedInputIsFoundBehindEveryOutputItReaches) {
  for (const char* kernel : kKernels)
    for (const char* input : {"k", "v"}) {
      Prepared r = prepare(kernel, Dtype::bf16);
      Tensor& poisoned = r.inputs.at(input);
      const int64_t flat = 5 * poisoned.axes.back().size + 3;  // t = 5, channel 3
      poisoned.set(flat, NAN);
      OriginOptions options;
      options.nearest_inputs = 0;
      for (const char* output : {"o", "final_state"}) {
        const Outcome outcome = vm::run(r.plan, r.inputs, {});
        const Tensor& out = outcome.outputs.at(output);
        int64_t last = -1;
        for (int64_t i = 0; i < out.size(); i++)
          if (std::isnan(out.value(i))) last = i;
        ASSERT_GE(last, 0) << kernel << " " << output;
        const auto trace = find_origin(r.plan, r.inputs, output, last, options);
        ASSERT_TRUE(trace) << kernel << " " << output;
        EXPECT_EQ(trace->origin.kind, OriginKind::input)
            << kernel << " " << output << ": " << trace->origin.sentence;
        ASSERT_FALSE(trace->origin.inputs.empty());
        EXPECT_EQ(trace->origin.inputs.front().element, poisoned.element_name(flat))
            << trace->origin.sentence;
      }
    }
}

TEST(KernelOrigin, AWatchedEventIsTheSameEventWithTheElementsItHadWhenItHappened) {
  Prepared r = prepare("gla.chunk", Dtype::bf16);
  Tensor& k = r.inputs.at("k");
  k.set(5 * k.axes.back().size + 3, NAN);
  vm::Recording whole, watched;
  vm::run_recorded(r.plan, r.inputs, {}, &whole);
  ASSERT_GT(whole.event_count, 2);
  for (int32_t index : {0, whole.event_count / 2}) {
    const Outcome outcome = vm::run_recorded(r.plan, r.inputs, {}, &watched, index);
    EXPECT_LE(watched.event_count, whole.event_count);
    const vm::Event a = whole.event(index), b = watched.event(index);
    EXPECT_EQ(a.instruction, b.instruction);
    EXPECT_EQ(a.thread, b.thread);
    EXPECT_EQ(a.inputs, b.inputs);
  }
}

TEST(KernelOrigin, AnOverflowOfTheStateIsFoundInItsAccumulation) {
  for (const char* kernel : kKernels) {
    Prepared r = prepare(kernel, Dtype::fp32);
    for (int64_t i = 0; i < r.inputs.at("k").size(); i++) r.inputs.at("k").set(i, 1e25);
    for (int64_t i = 0; i < r.inputs.at("v").size(); i++) r.inputs.at("v").set(i, 1e25);
    OriginOptions options;
    options.nearest_inputs = 0;
    const auto trace = find_origin(r.plan, r.inputs, "final_state", 0, options);
    ASSERT_TRUE(trace) << kernel;
    EXPECT_EQ(trace->origin.kind, OriginKind::accumulation_overflow)
        << kernel << ": " << trace->origin.sentence;
    EXPECT_FALSE(trace->origin.inputs.empty()) << kernel;
  }
}

}  // namespace
}  // namespace assay
