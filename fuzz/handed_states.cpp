#include "fuzz/handed_states.h"

#include <utility>
#include <vector>

#include "fuzz/slice.h"

namespace assay {
namespace {

/// Names of the states an operator starts from and of those it leaves, pairwise.
std::vector<std::pair<std::string, std::string>> states_of(const Operator& op) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const ArgumentSpec& input : op.inputs)
    if (input.role == Role::state) names.emplace_back(input.name, "");
  size_t at = 0;
  for (const ArgumentSpec& output : op.outputs)
    if (output.role == Role::state && at < names.size()) names[at++].second = output.name;
  return names;
}

/// The states that `tensors` hold under the first names, under the second ones.
TensorMap states_renamed(const TensorMap& tensors,
                         const std::vector<std::pair<std::string, std::string>>& names) {
  TensorMap states;
  for (const auto& [from, to] : names) {
    const auto found = tensors.find(from);
    if (found == tensors.end()) continue;
    Tensor state = found->second;
    state.name = to;
    states[to] = std::move(state);
  }
  return states;
}

}  // namespace

TensorMap unshared(TensorMap tensors) {
  std::erase_if(tensors, [](const auto& entry) {
    return axis_position(entry.second, "T") < 0 && axis_position(entry.second, "N") < 0;
  });
  return tensors;
}

TensorMap states_as_inputs(const Operator& op, const TensorMap& outputs) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [initial, last] : states_of(op)) names.emplace_back(last, initial);
  return states_renamed(outputs, names);
}
TensorMap gradients_as_cotangents(const Operator& op, const TensorMap& outputs) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [initial, last] : states_of(op)) names.emplace_back("d" + initial, "d" + last);
  return states_renamed(outputs, names);
}

Case with_state(Case c, const Operator& op, bool present) {
  c.initial_state = present;
  for (const ArgumentSpec& input : op.inputs) {
    if (input.role != Role::state || !input.optional) continue;
    if (present)
      c.without.erase(std::string(input.name));
    else
      c.without.insert(std::string(input.name));
  }
  return c;
}

}  // namespace assay
