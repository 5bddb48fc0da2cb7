#include "src/verification/diagnosis/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kForget = -6e4;  // e^-60000 is 0, and fp16 holds the exponent

enum class Part { decay, write, read };

Part part_of(const ArgumentSpec& a) {
  if (a.role == Role::log_decay) return Part::decay;
  return a.name == "q" || a.name == "r" ? Part::read : Part::write;
}

int64_t row_of(const Event& e, Part part) {
  return part == Part::decay ? e.decay : part == Part::write ? e.write : e.read;
}

Events concatenated(const Schedule& s) {
  Events all;
  for (const Events& sequence : s.sequences) all.insert(all.end(), sequence.begin(), sequence.end());
  return all;
}

/// Elements of a tensor behind one token; 0 where it has no tokens.
int64_t width_of(const std::vector<Axis>& axes) {
  int64_t width = 1;
  bool tokens = false;
  for (const Axis& a : axes) {
    if (tokens) width *= a.size;
    tokens = tokens || a.name == "T";
  }
  return tokens ? width : 0;
}

Tensor spread(const Tensor& t, const Events& events, Part part) {
  std::vector<Axis> axes = t.axes;
  for (Axis& a : axes) {
    if (a.name == "B") a.size = 1;
    if (a.name == "T") a.size = static_cast<int64_t>(events.size());
  }
  Tensor out(t.name, t.dtype, axes);
  const int64_t width = width_of(t.axes), rows = width > 0 ? t.size() / width : 0;
  for (size_t e = 0; e < events.size(); ++e)
    for (int64_t c = 0, from = row_of(events[e], part); c < width; ++c) {
      const int64_t to = static_cast<int64_t>(e) * width + c;
      if (part == Part::decay && events[e].reset)
        out.set(to, kForget);
      else if (from >= 0 && from < rows)
        out.set_bits(to, t.bits(from * width + c));
    }
  return out;
}

/// Results at the events, added up where their tokens are.
PredictedOutput gathered(const PredictedOutput& at_events, const Events& events, Part part, int64_t width,
                         int64_t tokens) {
  const auto size = static_cast<size_t>(width * tokens);
  const double absent = std::numeric_limits<double>::quiet_NaN();
  PredictedOutput out{std::vector<double>(size), std::vector<double>(size)};
  std::vector<bool> seen(static_cast<size_t>(tokens));
  for (size_t e = 0; e < events.size(); ++e) {
    const int64_t row = row_of(events[e], part);
    if (row < 0 || row >= tokens) continue;
    seen[static_cast<size_t>(row)] = true;
    for (int64_t c = 0; c < width; ++c) {
      const auto to = static_cast<size_t>(row * width + c),
                 from = e * static_cast<size_t>(width) + static_cast<size_t>(c);
      out.mid[to] += at_events.mid[from], out.bound[to] += at_events.bound[from];
    }
  }
  for (size_t row = 0; part == Part::read && row < seen.size(); ++row)
    for (int64_t c = 0; !seen[row] && c < width; ++c)
      out.mid[row * static_cast<size_t>(width) + static_cast<size_t>(c)] = absent;
  return out;
}

Tensor zeros_like(const Tensor& t) {
  return Tensor(t.name, t.dtype, t.axes);
}

TensorMap spread_inputs(const FailingRun& run, const Schedule& schedule, const Events& events) {
  TensorMap inputs;
  for (const auto& [name, tensor] : run.inputs()) {
    const ArgumentSpec* spec = run.argument(name);
    const bool state = spec && spec->role == Role::state;
    if (width_of(tensor.axes) > 0)
      inputs[name] = spread(tensor, events, spec ? part_of(*spec) : Part::read);
    else if (state && !schedule.initial_state)
      inputs[name] = zeros_like(tensor);
    else if (!spec && !schedule.final_state)
      inputs[name] = zeros_like(tensor);
    else
      inputs[name] = tensor;
  }
  return inputs;
}

/// The part that an output, or the gradient of an input, belongs to.
Part part_of_output(const FailingRun& run, const std::string& name) {
  const ArgumentSpec* input = name.starts_with("d") ? run.argument(name.substr(1)) : nullptr;
  return input ? part_of(*input) : Part::read;
}

}  // namespace

Schedule schedule_of(const FailingRun& run, const std::function<Events(const TokenPlace&)>& events) {
  Schedule schedule;
  int64_t n = 0;
  for (const auto& [first, length] : run.spans()) {
    Events& list = schedule.sequences.emplace_back();
    for (int64_t t = 0; t < length; ++t) {
      const Events of_token = events({t, length, first + t, n});
      list.insert(list.end(), of_token.begin(), of_token.end());
    }
    ++n;
  }
  return schedule;
}

bool is_schedulable(const FailingRun& run) {
  const bool recurrent = std::any_of(run.op->inputs.begin(), run.op->inputs.end(),
                                     [](const ArgumentSpec& a) { return a.role == Role::state; });
  const bool gated_by_writes = !run.op->absent_gate_is_zero && run.gates().empty();
  return recurrent && !gated_by_writes;
}

bool can_reset(const FailingRun& run) {
  return is_schedulable(run) && !run.gates().empty();
}

bool is_linear(const FailingRun& run) {
  return run.op->proportional_to_scale;
}

bool reads_before_write(const FailingRun& run) {
  return run.argument("u") != nullptr;
}

std::optional<Prediction> evaluate_schedule(const FailingRun& run, const Schedule& schedule) {
  const Events events = concatenated(schedule);
  const TensorMap inputs = spread_inputs(run, schedule, events);
  FailingRun plain = run;
  plain.sums_gate_gradient = false;
  const auto spread_over = evaluate_with(plain, inputs, [&](Problem& p) {
    p.sizes.B = 1, p.sizes.T = static_cast<int64_t>(events.size());
    p.sizes.N = static_cast<int64_t>(schedule.sequences.size());
    p.cu_seqlens = {0};
    for (const Events& sequence : schedule.sequences)
      p.cu_seqlens.push_back(p.cu_seqlens.back() + static_cast<int64_t>(sequence.size()));
  });
  if (!spread_over) return std::nullopt;
  Prediction prediction;
  const int64_t tokens = run.problem.sizes.B * run.problem.sizes.T;
  const auto width_at = [&](const PredictedOutput& p) {
    return events.empty() ? 0 : static_cast<int64_t>(p.mid.size() / events.size());
  };
  for (const auto& [name, at_events] : *spread_over) {
    const ReferenceOutput* expected = run.expected(name);
    const bool of_tokens = expected ? width_of(expected->axes) > 0 : name == "dg";
    if (of_tokens)
      prediction[name] = gathered(at_events, events, part_of_output(run, name), width_at(at_events), tokens);
    else if (schedule.final_state || name.starts_with("d"))
      prediction[name] = at_events;
    else
      prediction[name] = {std::vector<double>(at_events.mid.size(), 0.0),
                          std::vector<double>(at_events.mid.size(), 0.0)};
  }
  sum_gate_gradient(run, prediction);
  return prediction;
}

}  // namespace assay
