// Speed of the virtual machine: lane-instructions (threads x PTX instructions executed) and tensor-core
// products per second, on one host thread and on all.
#include <benchmark/benchmark.h>

#include <string>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/compiled/compiled_code.h"
#include "src/base/vm/launch.h"
#include "src/base/vm/machine.h"
#include "src/base/vm/shadow_run.h"

namespace assay {
namespace {

/// A kernel that repeats `body` `count` times (%r3 counts, %r2 is the thread) and stores %f1. `setup` comes
/// before.
std::string loop_program(const std::string& setup, const std::string& body) {
  return R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 count)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .f32 %f<40>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 tile[16384];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  mov.u32 %r4, tile;
)" + setup +
         R"(  mov.u32 %r3, 0;
$L:
)" + body +
         R"(  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p1, %r3, %r1;
  @%p1 bra $L;
  mov.u32 %r3, %ctaid.x;
  mad.lo.s32 %r2, %r3, 128, %r2;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
)";
}

/// fma, ex2 and add on registers: arithmetic and nothing else.
std::string register_loop() {
  return loop_program(R"(  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, 0f3F000000;
  mov.f32 %f3, 0fBF800000;
)",
                      R"(  fma.rn.f32 %f1, %f1, %f2, %f3;
  ex2.approx.ftz.f32 %f4, %f1;
  add.rn.f32 %f1, %f1, %f4;
)");
}

/// Sums and products on registers, as they are or (-use_fast_math) flushing.
std::string sum_loop(const std::string& flush) {
  return loop_program(R"(  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, 0f3F000000;
  mov.f32 %f3, 0fBF800000;
)",
                      "  fma.rn" + flush + ".f32 %f1, %f1, %f2, %f3;\n  mul.rn" + flush +
                          ".f32 %f4, %f1, %f2;\n  add.rn" + flush + ".f32 %f1, %f1, %f4;\n");
}

/// A dot product of rows in shared memory: loads, address arithmetic and fma.
std::string shared_loop() {
  return loop_program(R"(  cvt.rn.f32.u32 %f1, %r2;
  shl.b32 %r5, %r2, 2;
  add.s32 %r6, %r4, %r5;
  st.shared.f32 [%r6], %f1;
  bar.sync 0;
  mov.f32 %f1, 0f00000000;
)",
                      R"(  and.b32 %r7, %r3, 127;
  shl.b32 %r7, %r7, 2;
  add.s32 %r7, %r4, %r7;
  ld.shared.f32 %f3, [%r7];
  ld.shared.f32 %f4, [%r6];
  fma.rn.f32 %f1, %f3, %f4, %f1;
)");
}

/// mma.sync m16n8k16 bf16, each on the result of the one before.
std::string tensor_loop() {
  return loop_program(
      R"(  mov.u32 %r4, 0x3f803f00;
  mov.u32 %r5, 0x3e80bf80;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f3F800000;
  mov.f32 %f3, 0fBF800000;
  mov.f32 %f4, 0f40000000;
)",
      R"(  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 
    {%f1, %f2, %f3, %f4}, {%r4, %r5, %r4, %r5}, {%r4, %r5}, {%f1, %f2, %f3, %f4};
)");
}

/// wgmma m64n64k16 bf16, A and B in shared memory with 128-byte swizzle, each on the result of the one
/// before.
std::string warpgroup_loop() {
  std::string sums, ones;
  for (int i = 0; i < 32; ++i) {
    sums += (i ? ", %f" : "%f") + std::to_string(i);
    ones += "  mov.f32 %f" + std::to_string(i) + ", 0f3F800000;\n";
  }
  return loop_program(R"(  mov.u32 %r5, 0x3e80bf80;
  mov.u32 %r3, 0;
$F:
  shl.b32 %r6, %r3, 9;
  shl.b32 %r7, %r2, 2;
  add.s32 %r6, %r6, %r7;
  add.s32 %r6, %r6, %r4;
  st.shared.b32 [%r6], %r5;
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p1, %r3, 32;
  @%p1 bra $F;
  fence.proxy.async;
  bar.sync 0;
  and.b32 %r6, %r4, 0x3ffff;
  shr.u32 %r6, %r6, 4;
  cvt.u64.u32 %rd4, %r6;
  or.b64 %rd4, %rd4, 0x4000004000010000;
  add.s64 %rd5, %rd4, 512;
  setp.eq.u32 %p2, %r1, %r1;
)" + ones,
                      R"(  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {)" +
                          sums + R"(}, %rd4, %rd5, %p2, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
)");
}

constexpr uint32_t kBlocks = 64, kThreads = 128;

Program loop_plan(std::string program, int32_t count) {
  Program plan;
  plan.name = "bench";
  plan.modules = {{"m", "bench.ptx", std::make_shared<const std::string>(std::move(program))}};
  plan.outputs = {{"out", Dtype::fp32, {{"T", kBlocks * kThreads}}}};
  plan.launches = {{.module = "m",
                    .function = "kernel",
                    .grid = {kBlocks, 1, 1},
                    .block = {kThreads, 1, 1},
                    .arguments = {PointerArgument{"out"}, count}}};
  return plan;
}

/// state.range(1): pieces compiled (1) or not, for what follows in this run.
void choose_engine(const benchmark::State& state) {
  vm::choose_engine(state.range(1) ? "compiled" : "interpreter");
}

/// state.range(0): host threads, 0 for all.
void run_loop(benchmark::State& state, std::string program, int32_t count, double products_per_warp) {
  choose_engine(state);
  const auto machine = make_vm_backend({.threads = static_cast<int>(state.range(0))});
  const Program plan = loop_plan(std::move(program), count);
  double lane_instructions = 0, products = 0;
  for (auto _ : state) {
    const Outcome outcome = machine->run(plan, {});
    if (outcome.trap) throw BadInput(outcome.trap->message);
    lane_instructions += static_cast<double>(outcome.lane_instructions);
    products += products_per_warp * count * kBlocks * (kThreads / 32);
  }
  state.counters["lane_instructions/s"] = benchmark::Counter(lane_instructions, benchmark::Counter::kIsRate);
  if (products > 0) state.counters["mma/s"] = benchmark::Counter(products, benchmark::Counter::kIsRate);
}

void arithmetic(benchmark::State& state) {
  run_loop(state, register_loop(), 2000, 0);
}
void sums(benchmark::State& state) {
  run_loop(state, sum_loop(""), 2000, 0);
}
void flushing_sums(benchmark::State& state) {
  run_loop(state, sum_loop(".ftz"), 2000, 0);
}
void shared_memory(benchmark::State& state) {
  run_loop(state, shared_loop(), 1000, 0);
}
void tensor_cores(benchmark::State& state) {
  run_loop(state, tensor_loop(), 200, 1);
}
/// mma/s: m64n64k16 of a warpgroup.
void warpgroup_tensor_cores(benchmark::State& state) {
  run_loop(state, warpgroup_loop(), 20, 0.25);
}

struct KernelRun {
  Case c;
  TensorMap inputs;
  Program plan;

  explicit KernelRun(const Case& drawn) : c(drawn) {
    const Kernel& kernel = find_kernel(c.kernel);
    const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
    inputs = draw_inputs(resolved);
    plan = kernel.plan(resolved, inputs);
  }
};

/// gla.fused_recurrent, B heads of 64 x 64.
Case recurrent_case(int64_t B) {
  Case c;
  c.kernel = "gla.fused_recurrent";
  c.B = B, c.T = 256, c.H = 1, c.K = 64, c.V = 64;
  return c;
}

/// gla.chunk, bf16, four heads of 64 x 64.
Case chunk_case() {
  Case c;
  c.kernel = "gla.chunk", c.dtype = Dtype::bf16;
  c.B = 1, c.T = 1024, c.H = 4, c.K = 64, c.V = 64;
  return c;
}

/// A whole kernel. state.range(0): host threads, 0 for all.
void run_kernel(benchmark::State& state, const Case& c) {
  choose_engine(state);
  const KernelRun run(c);
  const auto machine = make_vm_backend({.threads = static_cast<int>(state.range(0))});
  double lane_instructions = 0;
  for (auto _ : state)
    lane_instructions += static_cast<double>(machine->run(run.plan, run.inputs).lane_instructions);
  state.counters["lane_instructions/s"] = benchmark::Counter(lane_instructions, benchmark::Counter::kIsRate);
}

/// Without tensor cores.
void recurrent(benchmark::State& state) {
  run_kernel(state, recurrent_case(16));
}
void chunk(benchmark::State& state) {
  run_kernel(state, chunk_case());
}

/// Host code of all entries of gla.chunk, without parsing and decoding.
void compiling(benchmark::State& state) {
  const KernelRun run(chunk_case());
  std::vector<std::shared_ptr<const vm::Code>> codes;
  for (const Launch& launch : run.plan.launches)
    for (const Module& module : run.plan.modules)
      if (module.name == launch.module) codes.push_back(vm::decoded(module, launch.function));
  double ops = 0;
  for (auto _ : state)
    for (const auto& code : codes) {
      benchmark::DoNotOptimize(vm::compile(*code));
      ops += static_cast<double>(code->ops.size());
    }
  state.counters["s/1000 instructions"] =
      benchmark::Counter(ops / 1000, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// With a shadow beside every float, on one thread.
void run_with_shadow(benchmark::State& state, const Case& c) {
  const KernelRun run(c);
  double lane_instructions = 0;
  for (auto _ : state)
    lane_instructions += static_cast<double>(
        vm::run_shadow(run.plan, run.inputs, {.threads = 1}, {.by_line = false}).lane_instructions);
  state.counters["lane_instructions/s"] = benchmark::Counter(lane_instructions, benchmark::Counter::kIsRate);
}
void shadow(benchmark::State& state) {
  run_with_shadow(state, recurrent_case(1));
}
/// A case as small as most of a fuzz run: making ready counts.
void small_shadow(benchmark::State& state) {
  Case c;
  c.kernel = "gla.chunk", c.dtype = Dtype::bf16;
  c.B = 1, c.T = 64, c.H = 1, c.K = 16, c.V = 16;
  run_with_shadow(state, c);
}

/// Under all checks, on one thread.
void checked(benchmark::State& state, const Program& plan, const TensorMap& inputs) {
  double lane_instructions = 0;
  for (auto _ : state)
    lane_instructions +=
        static_cast<double>(vm::run_checked(plan, inputs, {.threads = 1}, {}).lane_instructions);
  state.counters["lane_instructions/s"] = benchmark::Counter(lane_instructions, benchmark::Counter::kIsRate);
}
void checked_recurrent(benchmark::State& state) {
  const KernelRun run(recurrent_case(1));
  checked(state, run.plan, run.inputs);
}
void checked_arithmetic(benchmark::State& state) {
  checked(state, loop_plan(register_loop(), 400), {});
}
void checked_shared_memory(benchmark::State& state) {
  checked(state, loop_plan(shared_loop(), 200), {});
}
void checked_warpgroup(benchmark::State& state) {
  checked(state, loop_plan(warpgroup_loop(), 4), {});
}

BENCHMARK(recurrent)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(chunk)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compiling)->Unit(benchmark::kMillisecond);
BENCHMARK(shadow)->Unit(benchmark::kMillisecond);
BENCHMARK(small_shadow)->Unit(benchmark::kMillisecond);
BENCHMARK(checked_recurrent)->Unit(benchmark::kMillisecond);
BENCHMARK(checked_arithmetic)->Unit(benchmark::kMillisecond);
BENCHMARK(checked_shared_memory)->Unit(benchmark::kMillisecond);
BENCHMARK(checked_warpgroup)->Unit(benchmark::kMillisecond);
BENCHMARK(arithmetic)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(sums)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(flushing_sums)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(shared_memory)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(warpgroup_tensor_cores)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(tensor_cores)
    ->ArgNames({"threads", "compiled"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
