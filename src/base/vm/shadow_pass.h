// One run of a program's launches beside exact arithmetic, its shadows kept.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/numerics/counted_work.h"
#include "src/base/numerics/threads.h"
#include "src/base/vm/error_trace.h"
#include "src/base/vm/shadow_text.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {

/// What an entry's parameters take at most (PTX ISA 5.1.6, "Parameter State Space"), rounded up.
constexpr uint64_t kParameterBytes = 1 << 15;

/// One run of all launches.
struct Pass {
  PreparedProgram prepared;
  ErrorMemory memory;
  std::vector<OpErrors> launches;
  TensorMap outputs;                       ///< and inputs that were changed in place; empty after a trap
  std::map<std::string, uint64_t> places;  ///< buffer -> its address
  uint64_t lane_instructions = 0;

  /// What a pass does beside carrying shadows.
  struct Watch {
    double parting = 0;
    std::function<std::vector<int>(size_t launch)> part_of_op = nullptr;
    /// Before each launch: may fill in ErrorPlan::offsets and the cells of memory.
    std::function<void(size_t launch, Pass&, ErrorPlan&)> enter = nullptr;
    bool strict = false;
    int parts = 0;
  };

  Pass(const Program& program, const TensorMap& inputs, const MachineOptions& options, const Watch& watch)
      : prepared(program, inputs, options) {
    for (const Allocation& a : prepared.memory().allocations()) {
      memory.add(a.name, a.base, a.bytes, 2, {ErrorKind::none, watch.parts});
      places[a.name] = a.base;
      for (const Part& part : a.parts) places[part.name] = a.base + part.offset;
    }
    memory.add("parameters", parameter_base, kParameterBytes, 2, {ErrorKind::none, watch.parts});
    bool wide = false;
    for (size_t i = 0; i < program.launches.size(); ++i) wide |= shadow_text(prepared.code(i)).makes_wide;
    bool trapped = false;
    for (size_t i = 0; i < program.launches.size() && !trapped; ++i) {
      ErrorPlan shared;
      shared.memory = &memory, shared.parting = watch.parting, shared.wide = wide;
      shared.strict = watch.strict, shared.parts = watch.parts;
      if (watch.part_of_op) shared.part_of_op = watch.part_of_op(i);
      if (watch.enter) watch.enter(i, *this, shared);
      trapped = run_launch(prepared.enter(i), options, shared);
    }
    if (trapped) return;
    outputs = prepared.changed(inputs);
    for (auto& [name, tensor] : outputs) tensor.name = name;
    outputs.merge(prepared.take_outputs());
  }

  /// True: trapped.
  bool run_launch(const LaunchContext& context, const MachineOptions& options, const ErrorPlan& shared) {
    const auto& grid = context.launch->grid;
    const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
    const uint64_t threads =
        context.code->global_atomics ? 1 : std::min(threads_or_all(options.threads), blocks);
    std::atomic<uint64_t> next{0};
    std::atomic<bool> trapped{false};
    std::mutex mutex;
    OpErrors& total = launches.emplace_back();
    const double before = counted_seconds();
    uint64_t instructions = 0;
    on_threads(threads, [&] {
      ErrorTrace trace(shared);
      TracedLaunch done;
      try {
        done = run_each(context, trace, [&](bool trap) -> std::optional<uint64_t> {
          if (trap) trapped = true;
          if (trapped) return std::nullopt;
          const uint64_t block = next.fetch_add(1);
          return block < blocks ? std::optional(block) : std::nullopt;
        });
      } catch (const Abandoned&) {  // thrown again by the thread that the others belong to
        return;
      }
      const std::lock_guard lock(mutex);
      total.merge(trace.counts);
      lane_instructions += done.lane_instructions, instructions += done.instructions;
    });
    seconds_counted = before;  // this thread's share alone
    count_work(1, kOfLaunch), count_work(static_cast<double>(instructions), ErrorTrace::nanoseconds);
    if (context.is_abandoned()) throw Abandoned();
    return trapped;
  }

  /// Calls visit(flat, cell, cells) for each element of an output; the cell is as ErrorCells::find gives it.
  template <class Visit>
  void each_element(const Tensor& tensor, Visit visit) const {
    const uint64_t start = places.at(tensor.name);
    const auto area = std::find_if(memory.areas().begin(), memory.areas().end(),
                                   [&](const auto& a) { return start - a.base <= a.bytes; });
    const auto bytes = static_cast<uint64_t>(format(tensor.dtype).bytes);
    const bool followed = bytes > 1 && (start - area->base) % bytes == 0;  // cells are of 16 bits
    const ErrorKind kind = error_kind_of(tensor.dtype);
    static const ErrorCells nothing;
    for (int64_t flat = 0; flat < tensor.size(); ++flat) {
      if (!followed) {
        visit(flat, ErrorCells::unfollowed, nothing);
        continue;
      }
      const auto [cells, at] =
          ErrorMemory::seen(*area, start - area->base + static_cast<uint64_t>(flat) * bytes);
      const bool high_alone = kind == ErrorKind::f32 && (tensor.bits(flat) & 0xffff) == 0;
      visit(flat, cells ? cells->find(at, 1, kind, high_alone) : ErrorCells::exact, cells ? *cells : nothing);
    }
  }
  /// visit(flat, value, cell, cells) for each element that is finite and followed.
  template <class Visit>
  void each_followed(const Tensor& tensor, Visit visit) const {
    each_element(tensor, [&](int64_t flat, size_t at, const ErrorCells& cells) {
      const double value = tensor.value(flat);
      if (at < ErrorCells::unfollowed && std::isfinite(value)) visit(flat, value, at, cells);
    });
  }
};

inline bool is_real(Dtype d) {
  return d != Dtype::i32 && d != Dtype::i64 && d != Dtype::u8;
}

}  // namespace assay::vm
