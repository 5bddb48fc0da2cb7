// Small PTX kernels for tests: a body between loads and stores, run on the machine.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "src/base/vm/machine.h"

namespace assay::vm {

/// Buffers of 32-bit words by name; "out" is the output.
struct SmallKernel {
  std::string declarations;       ///< module scope: .shared, .const, functions
  std::string body;               ///< may use %a %b %c (b32), writes %d (b32); see `prologue`
  std::vector<uint32_t> a, b, c;  ///< one word per thread; a single word is broadcast, none is zero
  uint32_t threads = 32, blocks = 1;
  uint32_t shared_bytes = 0;
  std::array<uint32_t, 3> cluster{};
  uint64_t budget = 0;
  std::string arch = "sm_90";
  int host_threads = 1;
};

inline std::string text_of(const SmallKernel& kernel) {
  return ".version 7.8\n.target sm_90\n.address_size 64\n" + kernel.declarations +
         "\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n"
         ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<30>; .reg .f32 %f<20>; .reg "
         ".f64 %fd<10>;\n"
         ".reg .b32 %a, %b, %c, %d, %t; .reg .b64 %pa, %pb, %pc, %pd, %at;\n"
         "ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pd, [pd];\n"
         "mov.u32 %r30, %ctaid.x; mov.u32 %r31, %ntid.x; mov.u32 %r32, %tid.x; mad.lo.s32 %t, %r30, %r31, "
         "%r32;\n"
         "mul.wide.u32 %at, %t, 4; add.s64 %pa, %pa, %at; add.s64 %pb, %pb, %at; add.s64 %pc, %pc, %at; "
         "add.s64 %pd, %pd, %at;\n"
         "ld.global.b32 %a, [%pa]; ld.global.b32 %b, [%pb]; ld.global.b32 %c, [%pc]; mov.u32 %d, 0;\n" +
         kernel.body + "\nDONE:\nst.global.b32 [%pd], %d;\nret;\n}\n";
}

inline Program plan_of(const SmallKernel& kernel, TensorMap& inputs) {
  const int64_t count = int64_t{kernel.threads} * kernel.blocks;
  auto words = [&](const std::string& name, const std::vector<uint32_t>& values) {
    Tensor tensor(name, Dtype::i32, {{"T", count}});
    for (int64_t i = 0; i < count; ++i)
      tensor.set_bits(i, values.empty()       ? 0
                         : values.size() == 1 ? values[0]
                                              : values.at(static_cast<size_t>(i)));
    inputs[name] = std::move(tensor);
  };
  words("a", kernel.a);
  words("b", kernel.b);
  words("c", kernel.c);
  Program plan;
  plan.name = "test";
  plan.modules.push_back({"m", "test.ptx", std::make_shared<std::string>(text_of(kernel))});
  plan.outputs.push_back({"d", Dtype::i32, {{"T", count}}});
  Launch launch;
  launch.module = "m";
  launch.function = "k";
  launch.grid = {kernel.blocks, 1, 1};
  launch.block = {kernel.threads, 1, 1};
  launch.shared_bytes = kernel.shared_bytes;
  launch.cluster = kernel.cluster;
  for (const char* name : {"a", "b", "c", "d"}) launch.arguments.push_back(PointerArgument{name, 0});
  plan.launches.push_back(launch);
  return plan;
}

inline Outcome run_small(const SmallKernel& kernel) {
  TensorMap inputs;
  const Program plan = plan_of(kernel, inputs);
  return run(plan, inputs, {kernel.arch, kernel.host_threads, kernel.budget});
}

/// The words of "d"; empty if the kernel trapped.
inline std::vector<uint32_t> words_of(const Outcome& outcome) {
  std::vector<uint32_t> result;
  if (outcome.trap) return result;
  const Tensor& d = outcome.outputs.at("d");
  result.resize(static_cast<size_t>(d.size()));
  std::memcpy(result.data(), d.data.data(), d.data.size());
  return result;
}

/// Thread 0's word of a kernel of one warp.
inline uint32_t first_word(const SmallKernel& kernel) {
  const Outcome outcome = run_small(kernel);
  return outcome.trap ? 0xdead0000u : words_of(outcome).front();
}

}  // namespace assay::vm
