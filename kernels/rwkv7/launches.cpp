#include "kernels/rwkv7/launches.h"

#include <fmt/format.h>

#include "kernels/delta/delta_layout.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/launch_tables.h"

namespace assay::rwkv7 {

int64_t key_capacity(const Sizes& s) {
  return device::Capacity(s.K).columns;
}

Launches::Launches(Program& plan, const std::string& source, const ResolvedCase& c, SequenceTable sequences)
    : plan_(plan), sizes_(c.sizes), scale_(Argument::rounded(c.scale)), sequences_(std::move(sequences)) {
  module_ = gated::module_of(
      plan, fmt::format("rwkv7/{}.{}.{}", source, format(c.dtype).name, format(c.gate_dtype).name));
}

void Launches::by_columns(const std::string& scan, std::vector<Argument> arguments) {
  const int64_t blocks = device::blocks_of(sizes_.V, delta::block_columns);
  add(fmt::format("rwkv7_fused_recurrent_{}{}", scan, key_capacity(sizes_)), blocks, std::move(arguments));
}

void Launches::by_rows(const std::string& scan, std::vector<Argument> arguments) {
  const device::Capacity capacity(sizes_.V);
  add(fmt::format("rwkv7_fused_recurrent_{}{}", scan, capacity.columns), capacity.blocks(sizes_.K),
      std::move(arguments));
}

void Launches::add(const std::string& function, int64_t blocks, std::vector<Argument> arguments) {
  for (const Argument& argument :
       {Argument(PointerArgument{sequences_.name, 0}), Argument(scale_),
        Argument(static_cast<int32_t>(sizes_.H)), Argument(static_cast<int32_t>(sizes_.K)),
        Argument(static_cast<int32_t>(sizes_.V))})
    arguments.push_back(argument);
  gated::add_launch(plan_, module_, function, sequences_.count * sizes_.H * blocks, std::move(arguments));
}

void add_row_gradients(Launches& launches, Program& plan, const TensorMap& inputs, const RowGradients& from,
                       int64_t kept) {
  const auto input = [&](const char* name) { return gated::input_or_null(inputs, name); };
  const auto output = [&](const char* name) { return gated::output_or_null(plan, name); };
  const Sizes& s = launches.sizes();
  const PointerArgument states =
      gated::workspace_of(plan, "kept_states", 4 * kept * s.H * s.K * device::Capacity(s.V).columns);
  launches.by_rows("queries_", {input("w"), input("k"), input("v"), input("a"), input("b"), input("do"),
                                from.initial_state, from.reads, output("dr"), states});
  launches.by_rows("factors_", {input("r"), input("w"), input("k"), input("v"), input("a"), input("b"),
                                input("do"), from.dfinal_state, from.reads, from.pulls, states, output("dw"),
                                output("dk"), output("da"), output("db"), from.dinitial_state});
}

}  // namespace assay::rwkv7
