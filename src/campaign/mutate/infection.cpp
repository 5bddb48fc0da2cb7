#include "src/campaign/mutate/infection.h"

#include "src/base/vm/traced_launch.h"

namespace assay {
namespace {

/// A hash of everything that one instruction writes to registers, in order.
struct ResultTrace : vm::PlainTrace {
  static constexpr unsigned hooks = vm::hook::begin_block | vm::hook::after;
  int32_t function = -1, instruction = -1;
  uint64_t hash = 0xcbf29ce484222325, results = 0;

  void begin_block(vm::Block& block) { add(block.linear); }
  void after(vm::Warp& warp, const vm::Op& op, uint32_t mask) {
    if (op.instruction != instruction || op.function != function) return;
    add(mask);
    const vm::Signature& signature = warp.block->context->code->signature(op);
    if (signature.control == vm::Control::branch) ++results;
    for (const vm::Use& use : signature.writes) cell(warp, use.slot, use.cell, mask);
  }

 private:
  void add(uint64_t value) { hash = (hash ^ value) * 0x100000001b3; }
  void cell(const vm::Warp& warp, vm::Slot slot, vm::Cell kind, uint32_t mask) {
    ++results;
    if (kind == vm::Cell::mask) return add(warp.mask(slot) & mask);
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) add(kind == vm::Cell::wide ? warp.wide(slot)[lane] : warp.word(slot)[lane]);
  }
};

/// A hash of what is executed, by whom, but for one line of the module's text.
struct PathTrace : vm::PlainTrace {
  static constexpr unsigned hooks = vm::hook::begin_block | vm::hook::before;
  const vm::Code* code = nullptr;
  int32_t left_out = 0;  ///< PTX line
  uint64_t hash = 0xcbf29ce484222325;

  void begin_block(vm::Block& block) { add(block.linear); }
  void before(vm::Warp&, const vm::Op& op, uint32_t mask) {
    if (op.function < 0 || op.instruction < 0) return;
    const int32_t line = code->module->functions[static_cast<size_t>(op.function)]
                             .body[static_cast<size_t>(op.instruction)]
                             .ptx_line;
    if (line != left_out) add(static_cast<uint64_t>(line)), add(mask);
  }

 private:
  void add(uint64_t value) { hash = (hash ^ value) * 0x100000001b3; }
};

/// The plan's launches under the trace, which `enter` prepares for each.
template <class Trace, class Enter>
void run_traced(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options, Trace& trace,
                const Enter& enter) {
  vm::PreparedProgram prepared(plan, inputs, options);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const vm::LaunchContext& context = prepared.enter(i);
    enter(plan.launches[i], context);
    if (vm::run_traced(context, prepared.blocks(i), trace).trap) break;
  }
}

/// `place` gives the instruction's number, from the number of instructions of its function.
template <class PlaceOf>
ResultTrace results_of(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options,
                       const std::string& module, int32_t function, const PlaceOf& place) {
  ResultTrace trace;
  run_traced(plan, inputs, options, trace, [&](const Launch& launch, const vm::LaunchContext& context) {
    trace.function = trace.instruction = -2;
    if (launch.module != module) return;
    // Of a module only what the launched entry calls is read: of another entry there is no body.
    const size_t count = context.code->module->functions[static_cast<size_t>(function)].body.size();
    if (count > 0) trace.function = function, trace.instruction = place(count);
  });
  return trace;
}

uint64_t path_of(const Program& plan, const TensorMap& inputs, const vm::MachineOptions& options,
                 const std::string& module, int32_t ptx_line) {
  PathTrace trace;
  run_traced(plan, inputs, options, trace, [&](const Launch& launch, const vm::LaunchContext& context) {
    trace.code = context.code;
    trace.left_out = launch.module == module ? ptx_line : 0;
  });
  return trace.hash;
}

}  // namespace

std::optional<bool> result_changes(const Program& original, const Program& changed, const TensorMap& inputs,
                                   const vm::MachineOptions& options, const std::string& module,
                                   const ptx::Mutation& mutation) {
  size_t instructions = 0;
  const ResultTrace before =
      results_of(original, inputs, options, module, mutation.function, [&](size_t count) {
        instructions = count;
        return mutation.instruction;
      });
  // Where several stand in its place, the last of them gives the result; where none does, there is none.
  const ResultTrace after =
      results_of(changed, inputs, options, module, mutation.function, [&](size_t count) {
        return count < instructions ? -2 : mutation.instruction + static_cast<int32_t>(count - instructions);
      });
  if (before.results + after.results == 0) return std::nullopt;
  return before.hash != after.hash;
}

bool path_changes(const Program& original, const Program& changed, const TensorMap& inputs,
                  const vm::MachineOptions& options, const std::string& module, int32_t ptx_line) {
  return path_of(original, inputs, options, module, ptx_line) !=
         path_of(changed, inputs, options, module, ptx_line);
}

}  // namespace assay
