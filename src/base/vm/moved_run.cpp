#include "src/base/vm/moved_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/vm/shadow_pass.h"

namespace assay::vm {
namespace {

void begin_moves(const Program& program, const TensorMap& inputs, const InputMoves& moves, Pass& pass) {
  for (const auto& [name, elements] : moves) {
    const Tensor& input = inputs.at(name);
    const auto view = program.layouts.find(name);
    size_t hint = 0;
    const uint64_t base = pass.places.at(name);
    ErrorMemory::Area& area = *pass.memory.find(base, hint);
    for (const ElementMove& move : elements) {
      const int64_t position = view == program.layouts.end() ? move.flat : view->second.position(move.flat);
      const auto bytes = static_cast<uint64_t>(format(input.dtype).bytes);
      const auto [cells, at] =
          pass.memory.touch(area, base - area.base + static_cast<uint64_t>(position) * bytes);
      const ErrorKind kind = error_kind_of(input.dtype);
      cells->begin_to_hold();
      std::fill_n(&cells->kind[at], halves_of(kind), ErrorKind::tail);
      cells->kind[at] = kind, cells->error[at] = move.by, cells->bound[at] = 0;
    }
  }
}

}  // namespace

RealOutputs run_moved(const Program& program, const TensorMap& inputs, const InputMoves& moves,
                      const MachineOptions& machine) {
  const Pass pass(program, inputs, machine,
                  {.enter =
                       [&](size_t launch, Pass& to, ErrorPlan& plan) {
                         plan.shifters_by_value = true;
                         if (launch == 0) begin_moves(program, inputs, moves, to);
                       },
                   .strict = true});
  RealOutputs outputs;
  for (const auto& [name, tensor] : pass.outputs) {
    if (!is_real(tensor.dtype)) continue;
    std::vector<double>& values = outputs[name];
    pass.each_element(tensor, [&, &tensor = tensor](int64_t flat, size_t at, const ErrorCells& cells) {
      const double moved = at < ErrorCells::unfollowed ? cells.error[at] : 0,
                   value = tensor.value(flat) + moved;
      const bool known = at != ErrorCells::unfollowed && std::isfinite(value);
      values.push_back(known ? value : std::numeric_limits<double>::quiet_NaN());
    });
  }
  return outputs;
}

}  // namespace assay::vm
