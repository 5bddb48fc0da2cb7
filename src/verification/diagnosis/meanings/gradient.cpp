// Meanings of gradients: what of the upstream gradient arrives, and what is summed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

/// Cotangents of states ("dfinal_state") or of the others ("do").
std::vector<std::string> cotangents_of(const FailingRun& run, bool states) {
  std::vector<std::string> names;
  for (const std::string& name : run.cotangents())
    if ((token_width(run.inputs().at(name)) == 0) == states) names.push_back(name);
  return names;
}

std::vector<Variant> without_final_state(const FailingRun& run) {
  std::vector<Variant> v;
  for (const std::string& name : cotangents_of(run, true))
    v.push_back(on_input(run, name + " left out", name, zeros));
  return v;
}

std::vector<Variant> upstream_ignored(const FailingRun& run) {
  std::vector<Variant> v;
  for (const std::string& name : cotangents_of(run, false)) {
    v.push_back(on_input(run, name + " left out", name, zeros));
    v.push_back(on_input(run, name + " taken as ones", name,
                         [](const Tensor& t) { return mapped(t, [](double, int64_t) { return 1.0; }); }));
  }
  for (const std::string& name : cotangents_of(run, true))
    v.push_back(on_input(run, name + " taken as ones", name,
                         [](const Tensor& t) { return mapped(t, [](double, int64_t) { return 1.0; }); }));
  return v;
}

/// Of sums over all tokens that chunks add to: every second chunk, or none where the only one is left out.
void append_of_chunks(const FailingRun& run, std::vector<Slab>& slabs) {
  slabs.push_back({"none", [](int64_t) { return false; }});
  for (const int64_t C : chunk_sizes(run))
    for (const int64_t kept : {0, 1})
      slabs.push_back({fmt::format("the chunks of {} with {} numbers", C, kept == 0 ? "even" : "odd"),
                       [C, kept](int64_t i) { return i / C % 2 == kept; }});
}

/// Part of a sum: the upstream gradient of some sequences, heads, tokens or channels alone.
std::vector<Variant> incomplete(const FailingRun& run) {
  std::vector<Variant> v;
  for (const std::string& name : cotangents_of(run, false)) {
    const Tensor& d = run.inputs().at(name);
    for (size_t axis = 0; axis < d.axes.size(); ++axis) {
      const int64_t size = d.axes[axis].size;
      std::vector<Slab> slabs = slabs_of(size);
      if (d.axes[axis].name == "T" && only_sums_are_wrong(run)) append_of_chunks(run, slabs);
      for (const Slab& slab : slabs)
        v.push_back({fmt::format("only {} of {} over {} enters", name, slab.text, d.axes[axis].name),
                     [&run, name, axis, slab, sums = only_sums_are_wrong(run)] {
                       const Tensor& whole = run.inputs().at(name);
                       std::optional<Prediction> p =
                           evaluate_with(run, name, moved(whole, static_cast<int>(axis), [&](int64_t i) {
                                           return slab.kept(i) ? i : int64_t{-1};
                                         }));
                       for (const OutputComparison& o :
                            *run.judged) {  // what has the axis is not summed over it
                         const Tensor& out = run.outputs->at(o.name);
                         if (p && sums && (token_width(out) > 0 || axis_of(out, whole.axes[axis].name) >= 0))
                           p->erase(o.name);
                       }
                       return p;
                     }});
    }
  }
  return v;
}

/// Gradients of log decays made over: value(sequence's tokens in order, token, width) of the right ones.
using OverTime =
    std::function<double(const std::function<double(int64_t)>& right, int64_t t, int64_t length)>;

std::optional<Prediction> gate_gradient(const FailingRun& run, double slack, const OverTime& value) {
  Prediction p;
  for (const std::string& gate : run.gates()) {
    const ReferenceOutput* right = run.expected("d" + gate);
    if (!right) continue;
    const auto width = static_cast<size_t>(token_width(run.inputs().at(gate)));
    PredictedOutput& out = p["d" + gate];
    out = {right->mid, right->bound};
    for (const auto& [first, length] : run.spans())
      for (size_t c = 0; c < width; ++c)
        for (int64_t t = 0; t < length; ++t) {
          const auto at = [&, start = first](int64_t i) {
            return static_cast<size_t>(start + i) * width + c;
          };
          out.mid[at(t)] = value([&](int64_t i) { return i < length ? right->mid[at(i)] : 0.0; }, t, length);
          double largest = 0;
          for (int64_t i = 0; i < length; ++i) largest = std::max(largest, right->bound[at(i)]);
          out.bound[at(t)] = slack * largest;
        }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

std::vector<Variant> not_summed(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.backward || run.gates().empty()) return v;
  v.push_back({"dg is the term of each token alone", [&run] {
                 return gate_gradient(
                     run, 2, [](const auto& right, int64_t t, int64_t) { return right(t) - right(t + 1); });
               }});
  v.push_back({"dg sums from the first token on instead of to the last", [&run] {
                 return gate_gradient(
                     run, 4, [](const auto& right, int64_t t, int64_t) { return right(0) - right(t + 1); });
               }});
  for (const int64_t C : chunk_sizes(run))
    v.push_back({fmt::format("dg sums to the end of its chunk of {} only", C), [&run, C] {
                   return gate_gradient(run, 2, [C](const auto& right, int64_t t, int64_t) {
                     return right(t) - right((t / C + 1) * C);
                   });
                 }});
  return v;
}

/// What a token's own operand and its gradient give its gate, x . dx over the channels that the gate lacks;
/// by the gate's element. Empty where the operand is not of the gate's tokens and channels, or no gradient of
/// it is there.
std::vector<double> own_terms(const FailingRun& run, const Tensor& gate, const std::string& operand) {
  const auto found = run.inputs().find(operand);
  const ReferenceOutput* gradient = run.expected("d" + operand);
  if (found == run.inputs().end() || !gradient) return {};
  const Tensor& x = found->second;
  if (gate.size() == 0 || token_width(x) % token_width(gate) != 0 || x.size() % gate.size() != 0) return {};
  const int64_t channels = x.size() / gate.size();
  std::vector<double> terms(static_cast<size_t>(gate.size()));
  for (int64_t i = 0; i < x.size(); ++i)
    terms[static_cast<size_t>(i / channels)] += x.value(i) * gradient->mid[static_cast<size_t>(i)];
  return terms;
}

/// dg_t + weight x_t . dx_t, times e^{g_t} where `decayed`.
std::optional<Prediction> with_own_term(const FailingRun& run, const std::string& operand, double weight,
                                        bool decayed) {
  Prediction p;
  for (const std::string& name : run.gates()) {
    const ReferenceOutput* right = run.expected("d" + name);
    const Tensor& gate = run.inputs().at(name);
    if (!right) continue;
    const std::vector<double> terms = own_terms(run, gate, operand);
    if (terms.empty()) continue;
    PredictedOutput& out = p["d" + name];
    out = {right->mid, right->bound};
    for (size_t i = 0; i < terms.size(); ++i) {
      const double factor = decayed ? std::exp(gate.value(static_cast<int64_t>(i))) : 1;
      out.bound[i] += 0x1p-20 * std::fabs(terms[i]);  // what the bounds of its factors leave out
      out.mid[i] = factor * (out.mid[i] + weight * terms[i]);
    }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

/// dg_t e^{power g_t}.
std::optional<Prediction> decayed_gate_gradient(const FailingRun& run, double power) {
  Prediction p;
  for (const std::string& name : run.gates()) {
    const ReferenceOutput* right = run.expected("d" + name);
    const Tensor& gate = run.inputs().at(name);
    if (!right || right->mid.size() != static_cast<size_t>(gate.size())) continue;
    PredictedOutput& out = p["d" + name];
    out = {right->mid, right->bound};
    for (size_t i = 0; i < out.mid.size(); ++i) {
      const double factor = std::exp(power * gate.value(static_cast<int64_t>(i)));
      if (std::isinf(factor))
        out.mid[i] = std::numeric_limits<double>::quiet_NaN();  // 0 times that may be anything
      else
        out.mid[i] *= factor, out.bound[i] *= std::max(1.0, factor);
    }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

std::vector<Variant> without_decay(const FailingRun& run) {
  if (!run.backward || run.gates().empty()) return {};
  return {{"dg_t lacks the factor e^{g_t}", [&run] { return decayed_gate_gradient(run, -1); }},
          {"dg_t has the factor e^{g_t} twice", [&run] { return decayed_gate_gradient(run, 1); }}};
}

std::vector<Variant> without_own_term(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.backward || run.gates().empty()) return v;
  for (const std::string& operand : run.operands()) {
    for (const double weight : {1.0, -1.0})
      v.push_back({fmt::format("dg_t {} {}_t . d{}_t {}", weight > 0 ? "also has" : "lacks", operand, operand,
                               weight > 0 ? "of its own token" : "of its own token, or subtracts it"),
                   [&run, operand, weight] { return with_own_term(run, operand, weight, false); }});
    v.push_back(
        {fmt::format("dg_t is made of the state after its token: with {}_t . d{}_t", operand, operand),
         [&run, operand] { return with_own_term(run, operand, 1, true); }});
  }
  v.push_back({"dg sums from the next token on", [&run] {
                 return gate_gradient(run, 1,
                                      [](const auto& right, int64_t t, int64_t) { return right(t + 1); });
               }});
  v.push_back({"dg sums from the token before on", [&run] {
                 return gate_gradient(run, 1, [](const auto& right, int64_t t, int64_t) {
                   return t > 0 ? right(t - 1) : 2 * right(0) - right(1);
                 });
               }});
  return v;
}

/// dg less the same at every token of a run of C tokens in a channel, the median of what is missing there.
std::optional<Prediction> without_constant(const FailingRun& run, int64_t C) {
  constexpr int64_t kFewest = 3;  // a constant through two points says nothing
  Prediction p;
  for (const std::string& gate : run.gates()) {
    const ReferenceOutput* right = run.expected("d" + gate);
    const auto got = run.outputs->find("d" + gate);
    if (!right || got == run.outputs->end()) continue;
    const auto width = static_cast<size_t>(token_width(run.inputs().at(gate)));
    PredictedOutput& out = p["d" + gate];
    out = {right->mid, right->bound};
    for (const auto& [first, length] : run.spans())
      for (int64_t start = 0; start < length; start += C)
        for (size_t c = 0; c < width && std::min(length, start + C) - start >= kFewest; ++c) {
          std::vector<double> off;
          const auto at = [&, first = first](int64_t t) {
            return static_cast<size_t>(first + t) * width + c;
          };
          for (int64_t t = start; t < std::min(length, start + C); ++t)
            off.push_back(got->second.value(static_cast<int64_t>(at(t))) - right->mid[at(t)]);
          const auto middle = off.begin() + static_cast<int64_t>(off.size() / 2);
          std::nth_element(off.begin(), middle, off.end());
          for (int64_t t = start; t < std::min(length, start + C); ++t) {
            out.mid[at(t)] += *middle;
            out.bound[at(t)] += left_by_fit(run, "d" + gate, *middle);
          }
        }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

/// Index of a gate's element within its token, of a state's element: the gate's axes are among the state's.
/// -1 where one is not.
int64_t gate_channel(const Tensor& gate, const Tensor& state, const std::vector<int64_t>& index) {
  int64_t channel = 0;
  for (const Axis& axis : gate.axes) {
    if (axis.name == "B" || axis.name == "T") continue;
    const int at = axis_of(state, axis.name);
    if (at < 0) return -1;
    channel = channel * axis.size + index[static_cast<size_t>(at)];
  }
  return channel;
}

/// dg less <S_T, dS_T>, summed over the axes that the gate lacks, at every token of the sequence.
std::optional<Prediction> without_product_of_states(const FailingRun& run) {
  Prediction p;
  const std::vector<std::pair<int64_t, int64_t>> spans = run.spans();
  const ReferenceResult forward = run.op->evaluate(run.problem);
  for (const std::string& gate : run.gates()) {
    const ReferenceOutput* right = run.expected("d" + gate);
    if (!right) continue;
    const Tensor& g = run.inputs().at(gate);
    const int64_t width = token_width(g);
    PredictedOutput& out = p["d" + gate];
    out = {right->mid, right->bound};
    for (const ReferenceOutput& state : forward.outputs) {
      const auto found = run.inputs().find("d" + state.name);
      if (found == run.inputs().end() || axis_of(found->second, "N") < 0) continue;
      const Tensor& cotangent = found->second;
      for (int64_t flat = 0; flat < cotangent.size(); ++flat) {
        const std::vector<int64_t> index = cotangent.index(flat);
        const int64_t channel = gate_channel(g, cotangent, index);
        if (channel < 0) return std::nullopt;
        const auto& [first, length] =
            spans[static_cast<size_t>(index[static_cast<size_t>(axis_of(cotangent, "N"))])];
        const double term = state.mid[static_cast<size_t>(flat)] * cotangent.value(flat);
        for (int64_t t = first; t < first + length; ++t)
          out.mid[static_cast<size_t>(t * width + channel)] -= term;
      }
    }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

/// Gradients of the gates without what comes from the final state, all others with it.
std::optional<Prediction> gates_without_final_state(const FailingRun& run) {
  TensorMap inputs = run.inputs();
  for (const std::string& name : cotangents_of(run, true)) inputs[name] = zeros(inputs.at(name));
  const auto without = evaluate_with(run, inputs);
  if (!without) return std::nullopt;
  Prediction p = reference_prediction(run);
  std::vector<std::string> gates = run.gates();
  if (run.sums_gate_gradient) gates.push_back("g_gamma");
  for (const std::string& gate : gates)
    if (const auto found = without->find("d" + gate); found != without->end())
      p[found->first] = found->second;
  return p;
}

std::vector<Variant> without_state_term(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.backward || run.gates().empty()) return v;
  if (!cotangents_of(run, true).empty()) {
    v.push_back({"the final state's gradient is left out of dg alone",
                 [&run] { return gates_without_final_state(run); }});
    v.push_back({"dg lacks the product of the final state and its gradient",
                 [&run] { return without_product_of_states(run); }});
  }
  return v;
}

std::vector<Variant> off_by_constant(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.backward || run.gates().empty()) return v;
  v.push_back({"dg is off by the same at every token of a sequence",
               [&run] { return without_constant(run, int64_t{1} << 40); }, 64});
  for (const int64_t C : chunk_sizes(run))
    v.push_back({fmt::format("dg is off by the same at every token of a chunk of {}", C),
                 [&run, C] { return without_constant(run, C); }, 64});
  return v;
}

}  // namespace

std::vector<Meaning> gradient_meanings() {
  return {{"gradient-without-final-state-term", "the final state's cotangent is left out",
           "start the reverse scan from it", without_final_state},
          {"gate-gradient-without-final-state-term", "dg lacks <S_T, dS_T>",
           "add it to every token of the sequence", without_state_term},
          {"gate-gradient-off-by-constant", "dg is off by the same at every token of a chunk or a sequence",
           "what all of its tokens share, the product of a state and its gradient, is missing, counted twice "
           "or another sequence's",
           off_by_constant, 0.97},
          {"gate-gradient-not-summed", "dg lacks its reverse sum, or sums in the wrong direction",
           "dg_t sums what every later token gives", not_summed},
          {"gate-gradient-without-own-term", "dg lacks what its own token gives, or has one token's too many",
           "dg_t takes the state before the token and the gradient after it", without_own_term},
          {"gate-gradient-without-decay", "dg lacks the factor e^g, or has it twice",
           "dg_t = e^{g_t} times the product of the state before the token with the gradient after it",
           without_decay},
          {"upstream-gradient-ignored", "an upstream gradient is left out, or taken as ones",
           "a gradient is linear in it", upstream_ignored},
          {"gradient-sum-incomplete",
           "a sum over sequences, heads, tokens or channels has only some of its terms",
           "check what is added up, and that nothing is overwritten", incomplete}};
}

}  // namespace assay
