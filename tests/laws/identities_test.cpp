// Identities of single operators, for every operator they apply to: two evaluations that must agree do so
// within the sum of their enclosures. Each check has a broken twin, the same comparison with the
// transformation left incomplete.
#include <gtest/gtest.h>

#include <functional>

#include "reference/operator.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace identities_test {

const Operator* current = nullptr;

bool has_input(const Operator& op, std::string_view name) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const ArgumentSpec& a) { return a.name == name; });
}
bool any(const Operator&) {
  return true;
}
/// The operators that are the shared recurrence.
bool gated_family(const Operator& op) {
  return has_input(op, "v") && (has_input(op, "q") || has_input(op, "r")) && op.outputs.size() == 2 &&
         !removes_from_state(op);
}
bool with_state(const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [](const ArgumentSpec& a) { return a.role == Role::state; });
}
bool with_gate(const Operator& op) {
  return has_input(op, "g") || has_input(op, "w");
}

/// A token can leave the state as it is: keys write it or a gate decays it, and neither the head (retention)
/// nor the token's mere arrival (a window that shifts) moves it.
bool can_be_neutral(const Operator& op) {
  return with_state(op) && !op.heads_differ && (with_gate(op) || has_input(op, "k"));
}

/// What the current operator calls its queries.
std::string queries() {
  return has_input(*current, "q") ? "q" : "r";
}
std::vector<size_t> state_outputs() {
  std::vector<size_t> found;
  for (size_t i = 0; i < current->outputs.size(); ++i)
    if (current->outputs[i].role == Role::state) found.push_back(i);
  return found;
}
std::vector<std::string> state_inputs() {
  std::vector<std::string> found;
  for (const ArgumentSpec& a : current->inputs)
    if (a.role == Role::state) found.emplace_back(a.name);
  return found;
}

ReferenceResult evaluate(RandomProblem& p) {
  p.problem.arithmetic = recurrent_fp32(p.problem.sizes.K);
  return current->evaluate(p.problem);
}

/// Copies tokens first .. first + count of every [B, T, ...] input.
void take_tokens(const RandomProblem& from, int64_t first, int64_t count, RandomProblem& to) {
  to.problem = from.problem;
  to.problem.inputs = &to.inputs;
  to.problem.sizes.T = count;
  to.inputs.clear();
  for (const auto& [name, tensor] : from.inputs) {
    if (tensor.axes.size() < 2 || tensor.axes[1].name != "T") {
      to.inputs[name] = tensor;
      continue;
    }
    std::vector<Axis> axes = tensor.axes;
    const int64_t T = axes[1].size, width = tensor.size() / std::max<int64_t>(1, axes[0].size * T);
    axes[1].size = count;
    Tensor part(name, tensor.dtype, axes);
    for (int64_t b = 0; b < axes[0].size; ++b)
      for (int64_t i = 0; i < count * width; ++i)
        part.set_bits(b * count * width + i, tensor.bits((b * T + first) * width + i));
    to.inputs[name] = part;
  }
}

/// Operators in blocks give the same bits whatever else is evaluated; the others the same up to their radii,
/// as more precision may be used for the whole slice.
bool same(const ReferenceOutput& a, size_t i, const ReferenceOutput& b, size_t j) {
  if (gated_family(*current)) return a.mid[i] == b.mid[j];
  return std::fabs(a.mid[i] - b.mid[j]) <= a.rad[i] + b.rad[j];
}

/// Elements of `a` outside of `factor` times `b`; both lists of (output, flat index).
int64_t apart(const ReferenceOutput& a, size_t i, const ReferenceOutput& b, size_t j, double factor = 1) {
  // The factor is a power of two or the allowance covers its product's rounding.
  const double allowed = a.rad[i] + std::fabs(factor) * b.rad[j] + 0x1p-52 * std::fabs(a.mid[i]);
  return std::fabs(a.mid[i] - factor * b.mid[j]) <= allowed ? 0 : 1;
}

int64_t all_apart(const ReferenceOutput& a, const ReferenceOutput& b, double factor = 1) {
  EXPECT_EQ(a.mid.size(), b.mid.size());
  int64_t count = 0;
  for (size_t i = 0; i < a.mid.size(); ++i) count += apart(a, i, b, i, factor);
  return count;
}

/// final_state as fp64, so that resuming loses nothing but the enclosure.
Tensor state_tensor(const ReferenceOutput& S) {
  Tensor tensor("initial_state", Dtype::fp64, S.axes);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, S.mid[static_cast<size_t>(i)]);
  return tensor;
}

void scale_tensor(Tensor& tensor, double factor) {
  Tensor wide(tensor.name, Dtype::fp64, tensor.axes);
  for (int64_t i = 0; i < tensor.size(); ++i) wide.set(i, factor * tensor.value(i));
  tensor = wide;
}

const char* const kDecays[] = {"none", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"};

/// `check(p, broken)` returns how many elements disagree; the broken twin must disagree somewhere.
void for_each_operator_and_decay(bool (*applies)(const Operator&),
                                 const std::function<int64_t(RandomProblem&, bool)>& check,
                                 RandomShape shape = {}) {
  uint64_t seed = 1;
  for (const Operator& op : operators()) {
    if (!applies(op)) continue;
    current = &op;
    int64_t seen = 0;
    for (const char* decay : kDecays) {
      shape.decay = decay, shape.T = shape.T == 8 ? 24 : shape.T;
      RandomProblem p, twin;
      draw_problem_of(op, decay, shape, seed, p);
      draw_problem_of(op, decay, shape, seed, twin);
      EXPECT_EQ(check(p, false), 0) << op.name << " " << decay << " seed " << seed;
      seen += check(twin, true);
      ++seed;
    }
    EXPECT_GT(seen, 0) << op.name << ": the broken twin went unseen";
  }
}

TEST(Identity, P1_a_run_split_and_resumed_equals_the_whole_run) {
  for_each_operator_and_decay(gated_family, [](RandomProblem& p, bool broken) {
    RandomProblem first, second;
    take_tokens(p, 0, 10, first);
    take_tokens(p, 10, 14, second);
    const auto whole = evaluate(p), a = evaluate(first);
    second.inputs["initial_state"] = state_tensor(a.outputs[1]);
    if (broken) second.inputs.erase("initial_state");
    const auto b = evaluate(second);
    int64_t count = 0;
    const ReferenceOutput &o = whole.outputs[0], &S = a.outputs[1];
    const size_t head = a.outputs[0].mid.size();
    double carried = 0;  // the resumed state is off by at most its radius, which reaches o through scale |q|
    for (double r : S.rad) carried += r;
    for (size_t i = 0; i < o.mid.size(); ++i) {
      if (i < head) {
        count += apart(o, i, a.outputs[0], i);
      } else {
        ReferenceOutput widened = b.outputs[0];
        widened.rad[i - head] += 10 * carried;  // |q| < 10
        count += apart(o, i, widened, i - head);
      }
    }
    ReferenceOutput widened = b.outputs[1];
    for (double& r : widened.rad) r += carried;
    return count + all_apart(whole.outputs[1], widened);
  });
}

TEST(Identity, P2_later_tokens_do_not_reach_earlier_outputs) {
  for_each_operator_and_decay(any, [](RandomProblem& p, bool broken) {
    const auto before = evaluate(p);
    const int64_t T = p.problem.sizes.T, t0 = broken ? 2 : 15;
    for (const ArgumentSpec& a : current->inputs) {
      if (std::find(a.axes.begin(), a.axes.end(), "T") == a.axes.end() ||
          !p.inputs.count(std::string(a.name)))
        continue;
      Tensor& x = p.at(std::string(a.name));
      for (int64_t i = x.size() / T * t0; i < x.size(); ++i) x.set(i, a.role == Role::log_decay ? -0.25 : 3);
    }
    const auto after = evaluate(p);
    int64_t count = 0;
    for (size_t i = 0; i < before.outputs[0].mid.size() / static_cast<size_t>(T) * 15; ++i)
      count += !same(before.outputs[0], i, after.outputs[0], i);
    return count;
  });
}

TEST(Identity, P3_a_neutral_token_leaves_the_state_unchanged) {
  for_each_operator_and_decay(can_be_neutral, [](RandomProblem& p, bool broken) {
    RandomProblem shorter;
    take_tokens(p, 0, 23, shorter);
    // Nothing written, nothing decayed, nothing removed; slots are written by s, elements by x.
    const bool slots = has_input(*current, "s");
    for (const char* name : {"k", "x", "s", "a", "g", "w"}) {
      if (!p.inputs.count(name) || (slots && *name == 'k')) continue;
      if (broken && (*name == 'k' || *name == 'x' || *name == 's')) continue;
      Tensor& x = p.at(name);
      for (int64_t i = x.size() / 24 * 23; i < x.size(); ++i) x.set(i, 0);
    }
    const auto a = evaluate(p), b = evaluate(shorter);
    int64_t count = 0;
    for (size_t o : state_outputs())
      for (size_t i = 0; i < a.outputs[o].mid.size(); ++i) count += !same(a.outputs[o], i, b.outputs[o], i);
    return count;
  });
}

TEST(Identity, P5_packed_sequences_equal_separate_calls) {
  RandomShape shape;
  shape.T = 25, shape.cu_seqlens = {0, 0, 9, 10, 25};
  for_each_operator_and_decay(
      with_state,
      [](RandomProblem& p, bool broken) {
        const auto packed = evaluate(p);
        int64_t count = 0;
        std::vector<size_t> at(packed.outputs.size(), 0);
        for (size_t n = 0; n + 1 < p.problem.cu_seqlens.size(); ++n) {
          RandomProblem part;
          const int64_t first = p.problem.cu_seqlens[n], tokens = p.problem.cu_seqlens[n + 1] - first;
          take_tokens(p, first, tokens, part);
          part.problem.cu_seqlens.clear();
          part.problem.sizes.N = 1;
          const int64_t row = broken ? 0 : static_cast<int64_t>(n);
          for (const std::string& name : state_inputs()) {
            const Tensor& all = p.at(name);
            std::vector<Axis> axes = all.axes;
            axes[0].size = 1;
            Tensor S0(name, Dtype::fp32, axes);
            for (int64_t i = 0; i < S0.size(); ++i) S0.set(i, all.value(row * S0.size() + i));
            part.inputs[name] = S0;
          }
          const auto alone = evaluate(part);
          for (size_t o = 0; o < at.size(); ++o)
            for (size_t i = 0; i < alone.outputs[o].mid.size(); ++i)
              count += !same(alone.outputs[o], i, packed.outputs[o], at[o]++);
        }
        return count;
      },
      shape);
}

TEST(Identity, P7_the_scale_is_linear_and_may_sit_on_q) {
  for_each_operator_and_decay([](const Operator& op) { return gated_family(op) || removes_from_state(op); },
                              [](RandomProblem& p, bool broken) {
                                const auto plain = evaluate(p);
                                p.problem.scale *= 3;
                                const auto scaled = evaluate(p);
                                p.problem.scale /= 3;
                                scale_tensor(p.at(queries()), 3);
                                const auto moved = evaluate(p);
                                const double c = broken ? 2 : 3;
                                return all_apart(scaled.outputs[0], plain.outputs[0], c) +
                                       all_apart(moved.outputs[0], plain.outputs[0], c) +
                                       all_apart(scaled.outputs[1], plain.outputs[1]);
                              });
}

TEST(Identity, P11_a_gate_of_zeros_equals_an_absent_gate_bit_for_bit) {
  for_each_operator_and_decay([](const Operator& op) { return op.name == "gla" || op.name == "simple_gla"; },
                              [](RandomProblem& p, bool broken) {
                                Tensor& g = p.at("g");
                                for (int64_t i = broken ? 20 : 0; i < g.size(); ++i) g.set(i, 0);
                                if (broken) g.set(0, -1);
                                const auto zeros = evaluate(p);
                                p.inputs.erase("g");
                                const auto absent = evaluate(p);
                                int64_t count = 0;
                                for (size_t o = 0; o < 2; ++o)
                                  for (size_t i = 0; i < zeros.outputs[o].mid.size(); ++i)
                                    count += zeros.outputs[o].mid[i] != absent.outputs[o].mid[i];
                                return count;
                              });
}

TEST(Identity, P12_values_against_keys_and_a_static_gauge_of_the_channels_change_nothing) {
  for_each_operator_and_decay(gated_family, [](RandomProblem& p, bool broken) {
    p.inputs.erase("initial_state");
    const auto plain = evaluate(p);
    scale_tensor(p.at("k"), 7);
    const Tensor v = p.at("v");
    Tensor divided("v", Dtype::fp64, v.axes);
    for (int64_t i = 0; i < v.size(); ++i) divided.set(i, v.value(i) / (broken ? 8 : 7));
    p.inputs["v"] = divided;
    const auto traded = evaluate(p);
    p.inputs["v"] = v;
    scale_tensor(p.at("k"), 1 / 7.0);
    // v / 7 and k 7 / 7 are rounded to doubles: 2^-53 of the companion each.
    ReferenceOutput widened = traded.outputs[0];
    for (size_t i = 0; i < widened.rad.size(); ++i) widened.rad[i] += 0x1p-51 * widened.companion[i];
    int64_t count = all_apart(widened, plain.outputs[0]);
    Tensor &q = p.at(queries()), &k = p.at("k");
    const int64_t K = p.problem.sizes.K;
    for (int64_t i = 0; i < q.size(); ++i) {
      const int shift = static_cast<int>(i % K) - 2;
      q.set(i, std::ldexp(q.value(i), -shift));
      k.set(i, std::ldexp(k.value(i), broken ? 0 : shift));
    }
    ReferenceOutput gauge = evaluate(p).outputs[0];
    for (size_t i = 0; i < gauge.rad.size(); ++i) gauge.rad[i] += 0x1p-51 * gauge.companion[i];
    return count + all_apart(gauge, plain.outputs[0]);
  });
}

TEST(Identity, P14_after_a_reset_the_past_is_forgotten) {
  for_each_operator_and_decay([](const Operator& op) { return with_state(op) && has_input(op, "g"); },
                              [](RandomProblem& p, bool broken) {
                                const int64_t width = p.at("g").size() / p.problem.sizes.T;
                                for (int64_t i = 0; i < width; ++i)
                                  p.at("g").set(12 * width + i, broken ? -1 : -1e4);
                                // What reads before the decay, p of comba, reads nothing there.
                                if (p.inputs.contains("p")) {
                                  const int64_t row = p.at("p").size() / p.problem.sizes.T;
                                  for (int64_t i = 12 * row; i < 13 * row; ++i) p.at("p").set(i, 0);
                                }
                                RandomProblem fresh;
                                take_tokens(p, 12, 12, fresh);
                                for (const std::string& name : state_inputs()) fresh.inputs.erase(name);
                                const auto a = evaluate(p), b = evaluate(fresh);
                                int64_t count = 0;
                                for (size_t o : state_outputs())
                                  count += all_apart(a.outputs[o], b.outputs[o]);
                                const size_t skip = a.outputs[0].mid.size() - b.outputs[0].mid.size();
                                for (size_t i = 0; i < b.outputs[0].mid.size(); ++i)
                                  count += apart(a.outputs[0], skip + i, b.outputs[0], i);
                                return count;
                              });
}

}  // namespace identities_test
}  // namespace assay
