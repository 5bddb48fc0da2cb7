#include "src/verification/diagnosis/failing_run.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// log e^{g_h} of each head from the operator itself: one step that writes nothing, from the state 1.
std::vector<double> decay_of_heads(const FailingRun& run) {
  Problem p = run.problem;
  const int64_t H = p.sizes.H;
  p.sizes.B = p.sizes.T = p.sizes.K = p.sizes.V = p.sizes.N = 1;
  p.cu_seqlens.clear();
  p.scale = 1;
  TensorMap inputs;
  for (const char* name : {"q", "k", "v"}) {
    Tensor x(name, Dtype::fp64, {{"B", 1}, {"T", 1}, {"H", H}, {*name == 'v' ? "V" : "K", 1}});
    for (int64_t i = 0; *name == 'q' && i < H; ++i) x.set(i, 1);
    inputs[name] = std::move(x);
  }
  Tensor state("initial_state", Dtype::fp64, {{"N", 1}, {"H", H}, {"K", 1}, {"V", 1}});
  for (int64_t h = 0; h < H; ++h) state.set(h, 1);
  inputs["initial_state"] = std::move(state);
  if (const auto gamma = run.inputs().find("g_gamma"); gamma != run.inputs().end())
    inputs["g_gamma"] = gamma->second;
  p.inputs = &inputs;
  std::vector<double> logs;
  for (const ReferenceOutput& o : run.op->evaluate(p).outputs)
    if (o.name == "o")
      for (double weight : o.mid) logs.push_back(weight > 0 ? std::log(weight) : -6e4);
  return logs;
}

bool has_axis(const ArgumentSpec& a, std::string_view letter) {
  return std::find(a.axes.begin(), a.axes.end(), letter) != a.axes.end();
}

}  // namespace

int axis_of(const Tensor& t, std::string_view letter) {
  for (size_t i = 0; i < t.axes.size(); ++i)
    if (t.axes[i].name == letter) return static_cast<int>(i);
  return -1;
}

const ReferenceOutput* FailingRun::expected(const std::string& name) const {
  for (const ReferenceOutput& o : reference->outputs)
    if (o.name == name) return &o;
  return nullptr;
}

std::vector<const OutputComparison*> FailingRun::wrong() const {
  std::vector<const OutputComparison*> list;
  for (const OutputComparison& o : *judged)
    if (o.violation + o.wrong_class > 0 && outputs->count(o.name) && expected(o.name)) list.push_back(&o);
  return list;
}

const ArgumentSpec* FailingRun::argument(const std::string& name) const {
  for (const ArgumentSpec& a : op->inputs)
    if (a.name == name) return &a;
  return nullptr;
}

std::vector<std::string> FailingRun::gates() const {
  std::vector<std::string> names;
  for (const ArgumentSpec& a : op->inputs)
    if (a.role == Role::log_decay && has_axis(a, "T") && inputs().count(std::string(a.name)))
      names.emplace_back(a.name);
  return names;
}

std::vector<std::string> FailingRun::operands() const {
  std::vector<std::string> names;
  for (const ArgumentSpec& a : op->inputs)
    if (is_plain(a.role) && inputs().count(std::string(a.name))) names.emplace_back(a.name);
  return names;
}

std::vector<std::string> FailingRun::states() const {
  std::vector<std::string> names;
  for (const ArgumentSpec& a : op->inputs)
    if (a.role == Role::state && inputs().count(std::string(a.name))) names.emplace_back(a.name);
  return names;
}

std::vector<std::string> FailingRun::cotangents() const {
  std::vector<std::string> names;
  for (const ArgumentSpec& a : op->outputs)
    if (inputs().count("d" + std::string(a.name))) names.push_back("d" + std::string(a.name));
  return names;
}

int64_t FailingRun::sequences() const {
  return problem.cu_seqlens.empty() ? problem.sizes.B : static_cast<int64_t>(problem.cu_seqlens.size()) - 1;
}

std::vector<std::pair<int64_t, int64_t>> FailingRun::spans() const {
  std::vector<std::pair<int64_t, int64_t>> list;
  const auto& cu = problem.cu_seqlens;
  for (int64_t n = 0; n < sequences(); ++n) {
    const auto i = static_cast<size_t>(n);
    if (cu.empty())
      list.emplace_back(n * problem.sizes.T, problem.sizes.T);
    else
      list.emplace_back(cu[i], cu[i + 1] - cu[i]);
  }
  return list;
}

void FailingRun::find_directions() {
  forward = backward = false;
  for (const OutputComparison* o : wrong()) {
    const bool of_operator = std::any_of(op->outputs.begin(), op->outputs.end(),
                                         [&](const ArgumentSpec& a) { return a.name == o->name; });
    (of_operator ? forward : backward) = true;
  }
}

FailingRun failing_run(const Operator& op, const Problem& problem, const TensorMap& outputs,
                       const ReferenceResult& reference, const std::vector<OutputComparison>& judged) {
  FailingRun run;
  run.op = &op, run.problem = problem;
  run.outputs = &outputs, run.reference = &reference, run.judged = &judged;
  run.find_directions();
  return run;
}

FailingRun with_explicit_gates(const FailingRun& run) {
  const bool shared = !run.op->with_gates.empty();
  const auto optional_gate = std::find_if(run.op->inputs.begin(), run.op->inputs.end(), [&](const auto& a) {
    return a.role == Role::log_decay && a.optional && has_axis(a, "T") && a.name == "g" &&
           run.op->absent_gate_is_zero;
  });
  if (!run.gates().empty() || (!shared && optional_gate == run.op->inputs.end())) return run;
  FailingRun made = run;
  const Sizes& s = run.problem.sizes;
  TensorMap inputs = run.inputs();
  if (shared) {
    made.op = &find_operator(run.op->with_gates);
    made.sums_gate_gradient = inputs.erase("g_gamma") > 0;
    const std::vector<double> logs = decay_of_heads(run);
    Tensor g("g", Dtype::fp64, {{"B", s.B}, {"T", s.T}, {"H", s.H}});
    for (int64_t i = 0; i < g.size(); ++i) g.set(i, logs[static_cast<size_t>(i % s.H)]);
    inputs["g"] = std::move(g);
  } else {
    std::vector<Axis> axes;
    for (std::string_view axis : optional_gate->axes) axes.push_back({std::string(axis), s.of(axis)});
    inputs["g"] = Tensor("g", Dtype::fp64, axes);
  }
  made.owned = std::make_shared<const TensorMap>(std::move(inputs));
  made.problem.inputs = made.owned.get();
  return made;
}

}  // namespace assay
