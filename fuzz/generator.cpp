#include "fuzz/generator.h"

#include <algorithm>
#include <set>

#include "fuzz/choice.h"
#include "fuzz/dimensions.h"
#include "fuzz/settle.h"

namespace assay {
namespace {

/// Lane instructions one run of this case may take.
double draw_budget() {
  return pick<double>({{60, 6e6}, {32, 2e7}, {7, 5e7}, {1, 1.2e8}});
}

Case draw_near_or_afresh(const Target& target) {
  Case c = !target.feedback.corpus.empty() && chance(25) ? redrawn(target) : fresh(target);
  c.kernel = target.kernel.name, c.rates = largest_rate(target.kernel);
  fit_cost(c, draw_budget());
  fit_sizes(c, target.kernel);
  agree(c, target.op);
  // A refused case is drawn again anyway, and no plan refuses one for its decays.
  if (!refused(c, target.kernel)) settle_gates(c, target);
  return c;
}

}  // namespace

bool uses_axis(const Operator& op, std::string_view axis) {
  for (const ArgumentSpec& input : op.inputs)
    for (std::string_view name : input.axes) {
      if (axis == "V" && name == "D") return true;
      for (size_t times; (times = name.find('*')) != name.npos; name.remove_prefix(times + 1))
        if (name.substr(0, times) == axis) return true;
      if (name == axis) return true;
    }
  return false;
}

void count_case(Feedback& feedback, const Case& c, const Operator& op) {
  ++feedback.drawn["cases"];
  ++feedback.drawn["decay " + c.decay.substr(0, c.decay.find(':'))];
  ++feedback.drawn[presence_of(c, op)];
}

std::string presence_of(const Case& c, const Operator& op) {
  std::string names = std::string(name_of(c.direction)) + ":";
  for (const ArgumentSpec& input : inputs_of(c, op))
    if (input.optional && is_present(c, input)) names += " " + std::string(input.name);
  return names;
}

void each_choice_of_inputs(Case& c, const Operator& op, const std::function<bool()>& visit) {
  std::vector<const ArgumentSpec*> optional;
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional) optional.push_back(&input);
  for (size_t absent = 0; absent < size_t{1} << optional.size(); ++absent) {
    c.without.clear();
    c.initial_state = false;
    for (size_t i = 0; i < optional.size(); ++i)
      if (absent >> i & 1)
        c.without.insert(std::string(optional[i]->name));
      else
        c.initial_state |= optional[i]->role == Role::state;
    if (!c.initial_state)
      for (const ArgumentSpec* input : optional)
        if (input->role == Role::state) c.without.erase(std::string(input->name));
    if (!visit()) return;
  }
}

std::vector<Case> choices_of_inputs(const Case& from, const Operator& op) {
  std::vector<Case> all;
  Case c = from;
  each_choice_of_inputs(c, op, [&] {
    all.push_back(c);
    return true;
  });
  return all;
}

std::vector<Case> presence_lattice(const Case& from, const Kernel& kernel, const Operator& op) {
  std::vector<Case> lattice;
  std::set<std::string> seen;
  for (Case& c : choices_of_inputs(from, op)) {
    if (refused(c, kernel)) continue;
    if (seen.insert(presence_of(c, op)).second) lattice.push_back(std::move(c));
  }
  return lattice;
}

Case draw_case(const Kernel& kernel, const Operator& op, const Feedback& feedback, uint64_t seed,
               uint64_t index) {
  const Target target{kernel, op, feedback};
  return first_accepted([&] { return draw_near_or_afresh(target); }, kernel, seed, index);
}

int64_t longest_sequence(const Case& c) {
  if (c.cu_seqlens.empty()) return c.T;
  int64_t longest = 0;
  for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n)
    longest = std::max(longest, c.cu_seqlens[n + 1] - c.cu_seqlens[n]);
  return longest;
}

}  // namespace assay
