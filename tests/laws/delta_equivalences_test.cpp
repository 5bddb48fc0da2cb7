// Delta rules that are one another, or simpler operators, in disguise: their evaluations must meet within the
// sum of their enclosures. Each has a broken twin.
#include <gtest/gtest.h>

#include <functional>

#include "reference/operator.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace delta_equivalences_test {

int64_t apart(const ReferenceOutput& a, const ReferenceOutput& b) {
  EXPECT_EQ(a.mid.size(), b.mid.size());
  int64_t count = 0;
  for (size_t i = 0; i < a.mid.size(); ++i) count += !(std::fabs(a.mid[i] - b.mid[i]) <= a.rad[i] + b.rad[i]);
  return count;
}
int64_t apart(const ReferenceResult& a, const ReferenceResult& b) {
  EXPECT_EQ(a.outputs.size(), b.outputs.size());
  int64_t count = 0;
  for (size_t o = 0; o < a.outputs.size(); ++o) count += apart(a.outputs[o], b.outputs[o]);
  return count;
}
const ReferenceOutput& named(const ReferenceResult& y, std::string_view name) {
  return *std::find_if(y.outputs.begin(), y.outputs.end(), [&](const auto& o) { return o.name == name; });
}

ReferenceResult outputs(const char* op, const RandomProblem& p) {
  return find_operator(op).evaluate(p.problem);
}
ReferenceResult gradients(const char* op, const RandomProblem& p) {
  return find_operator(op).evaluate_adjoint(p.problem);
}

/// In fp64: products of two fp32 numbers are exact.
void set(RandomProblem& p, const char* name, std::vector<Axis> axes,
         const std::function<double(int64_t)>& value) {
  Tensor tensor(name, Dtype::fp64, std::move(axes));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value(i));
  p.inputs[name] = tensor;
}

constexpr int64_t kT = 13, kH = 2, kK = 5, kV = 3;

void draw(const char* op, const char* decay, uint64_t seed, RandomProblem& p, int64_t HV = 0) {
  RandomShape shape;
  shape.T = kT, shape.H = kH, shape.K = kK, shape.V = kV, shape.HV = HV, shape.cotangents = true;
  draw_problem_of(find_operator(op), decay, shape, seed, p);
  p.problem.arithmetic = recurrent_fp32(shape.K);
  p.problem.adjoint.state = p.problem.adjoint.adjoint = p.problem.arithmetic;
}

/// `check(p, broken)` counts disagreements of what it derives from a drawn problem.
void for_each_decay(const char* op, const std::function<int64_t(RandomProblem&, bool)>& check,
                    int64_t HV = 0) {
  uint64_t seed = 1;
  int64_t seen = 0;
  for (const char* decay : {"none", "near-one", "logsigmoid", "strong", "reset", "extreme"}) {
    RandomProblem p, twin;
    draw(op, decay, seed, p, HV), draw(op, decay, seed, twin, HV);
    EXPECT_EQ(check(p, false), 0) << op << " " << decay << " seed " << seed;
    seen += check(twin, true), ++seed;
  }
  EXPECT_GT(seen, 0) << op << ": the broken twin went unseen";
}

TEST(DeltaEquivalence, P18_one_gate_for_all_channels_is_the_heads_and_no_gate_is_the_delta_rule) {
  for_each_decay("gated_delta_rule", [](RandomProblem& p, bool broken) {
    const Tensor g = p.at("g");
    const auto of_heads = outputs("gated_delta_rule", p), back = gradients("gated_delta_rule", p);
    set(p, "g", p.at("q").axes, [&](int64_t i) { return broken && i % kK == 1 ? -1.0 : g.value(i / kK); });
    int64_t count = apart(of_heads, outputs("kda", p));
    const auto back_of_channels = gradients("kda", p);
    for (const char* name : {"dq", "dk", "dv", "dbeta"})
      count += apart(named(back, name), named(back_of_channels, name));
    set(p, "g", p.at("q").axes, [&](int64_t i) { return broken && i == 3 ? -1.0 : 0; });
    const auto still = outputs("kda", p);
    p.inputs.erase("g");
    return count + apart(still, outputs("delta_rule", p));
  });
}

TEST(DeltaEquivalence, P18_nothing_replaced_only_decays) {
  for_each_decay("kda", [](RandomProblem& p, bool broken) {
    set(p, "beta", p.at("beta").axes, [&](int64_t i) { return broken && i == 4 ? 0.5 : 0; });
    const auto still = outputs("kda", p);
    set(p, "k", p.at("k").axes, [](int64_t) { return 0; });
    return apart(still, outputs("gla", p));
  });
}

TEST(DeltaEquivalence, P19_what_is_wholly_replaced_is_read_back) {
  for_each_decay("kda", [](RandomProblem& p, bool broken) {
    const Tensor v = p.at("v");
    set(p, "k", p.at("k").axes, [](int64_t i) { return i % kK == i / kK % kK ? 1 : 0; });
    p.inputs["q"] = p.at("k");
    set(p, "beta", p.at("beta").axes, [&](int64_t i) { return broken && i == 4 ? 0.5 : 1; });
    p.problem.scale = 1;
    const ReferenceOutput o = named(outputs("kda", p), "o");
    int64_t count = 0;
    for (size_t i = 0; i < o.mid.size(); ++i)
      count += !(std::fabs(o.mid[i] - v.value(static_cast<int64_t>(i))) <= o.rad[i]);
    return count;
  });
}

TEST(DeltaEquivalence, P20_orthogonal_keys_only_write) {
  for_each_decay("delta_rule", [](RandomProblem& p, bool broken) {
    p.inputs.erase("initial_state");
    const Tensor v = p.at("v"), beta = p.at("beta");
    // A key for each of the first tokens, then none.
    set(p, "k", p.at("k").axes, [](int64_t i) { return i / (kK * kH) == i % kK ? 1.5 : 0; });
    const auto replaced = outputs("delta_rule", p);
    set(p, "v", v.axes, [&](int64_t i) { return v.value(i) * (broken ? 1 : beta.value(i / kV)); });
    return apart(replaced, outputs("linear_attn", p));
  });
}

TEST(DeltaEquivalence, P21_it_is_the_generalised_rule_that_opposes_its_keys) {
  for_each_decay("delta_rule", [](RandomProblem& p, bool broken) {
    const Tensor k = p.at("k"), beta = p.at("beta");
    const auto own = outputs("delta_rule", p);
    p.inputs["r"] = p.at("q");
    set(p, "w", k.axes, [](int64_t) { return 0; });
    set(p, "a", k.axes, [&](int64_t i) { return -k.value(i); });
    set(p, "b", k.axes, [&](int64_t i) { return k.value(i) * (broken && i == 7 ? 1 : beta.value(i / kK)); });
    p.inputs["k"] = p.at("b");
    return apart(own, outputs("rwkv7", p));
  });
}

TEST(DeltaEquivalence, comba_is_the_generalised_rule_that_reads_with_p_and_opposes_by_beta_k) {
  for_each_decay("comba", [](RandomProblem& p, bool broken) {
    const Tensor k = p.at("k"), beta = p.at("beta"), g = p.at("g");
    const auto own = outputs("comba", p);
    p.inputs["r"] = p.at("q"), p.inputs["a"] = p.at("p");
    set(p, "w", k.axes, [&](int64_t i) { return g.value(i / kK); });
    set(p, "k", k.axes, [&](int64_t i) { return k.value(i) * (broken && i == 7 ? 1 : beta.value(i / kK)); });
    set(p, "b", k.axes, [&](int64_t i) { return -p.at("k").value(i); });
    return apart(own, outputs("rwkv7", p));
  });
}

TEST(DeltaEquivalence, comba_without_decay_that_reads_with_its_keys_is_the_delta_rule) {
  for_each_decay("comba", [](RandomProblem& p, bool broken) {
    set(p, "g", p.at("g").axes, [](int64_t) { return 0; });
    p.inputs["p"] = p.at("k");
    const auto own = outputs("comba", p), d = gradients("comba", p);
    if (broken) p.inputs.erase("beta");
    int64_t count = apart(own, outputs("delta_rule", p));
    const auto back = gradients("delta_rule", p);
    for (const char* name : {"dq", "dv", "dbeta", "dinitial_state"})
      if (!broken) count += apart(named(d, name), named(back, name));
    return count;
  });
}

TEST(DeltaEquivalence, gated_delta_product_is_the_gated_rule_on_its_writes) {
  for_each_decay("gated_delta_product", [](RandomProblem& p, bool broken) {
    const auto own = outputs("gated_delta_product", p), back = gradients("gated_delta_product", p);
    const int64_t M = p.problem.sizes.M;
    // Rows of a token's writes lie one behind the other; queries and cotangents are at the last, gates at the
    // first.
    for (auto& [name, tensor] : TensorMap(p.inputs)) {
      if (tensor.axes[0].name != "B") continue;
      std::vector<Axis> axes = tensor.axes;
      axes[1].size *= M;
      if (axes[2].name == "M") axes.erase(axes.begin() + 2);
      const bool spread = axes.size() == tensor.axes.size();
      const int64_t place = name == "g" && !broken ? 0 : M - 1;
      const Tensor from = tensor;
      set(p, name.c_str(), axes, [&](int64_t i) {
        if (!spread) return from.value(i);
        const int64_t width = from.size() / kT, row = i / width;
        return row % M == place ? from.value(row / M * width + i % width) : 0;
      });
    }
    p.problem.sizes.T = kT * M;
    const auto rule = outputs("gated_delta_rule", p), of_rule = gradients("gated_delta_rule", p);
    int64_t count = apart(named(own, "final_state"), named(rule, "final_state"));
    for (const auto& [ours, its] : {std::pair{&own, &rule}, {&back, &of_rule}})
      for (const ReferenceOutput& y : ours->outputs) {
        const ReferenceOutput& z = named(*its, y.name);
        const size_t width = y.mid.size() / kT, writes = static_cast<size_t>(M);
        const size_t place = y.name == "dg" ? 0 : writes - 1;
        for (size_t i = 0; i < y.mid.size(); ++i) {
          const size_t j =
              z.mid.size() == y.mid.size() ? i : (i / width * writes + place) * width + i % width;
          count += !(std::fabs(y.mid[i] - z.mid[j]) <= y.rad[i] + z.rad[j]);
        }
      }
    return count;
  });
}

/// x with each head of H repeated for `sharing` heads in a row.
Tensor repeated(const Tensor& x, int64_t sharing) {
  std::vector<Axis> axes = x.axes;
  axes[2].size *= sharing;
  Tensor y(x.name, x.dtype, axes);
  const int64_t heads = x.axes[2].size, width = x.axes[3].size;
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t token = i / (heads * sharing * width), head = i / width % (heads * sharing) / sharing;
    y.set(i, x.value((token * heads + head) * width + i % width));
  }
  return y;
}

TEST(DeltaEquivalence, P9_value_heads_share_queries_and_keys_as_if_these_were_repeated) {
  for (const char* op : {"gated_delta_rule", "kda"})
    for_each_decay(
        op,
        [&](RandomProblem& p, bool broken) {
          const auto shared = outputs(op, p), back = gradients(op, p);
          for (const char* name : {"q", "k"}) {
            const Tensor x = p.at(name);
            p.inputs[name] = repeated(x, 2);
            if (!broken) continue;
            set(p, name, p.at(name).axes, [&](int64_t i) {  // tiled
              const int64_t token = i / (2 * kH * kK), head = i / kK % (2 * kH) % kH;
              return x.value((token * kH + head) * kK + i % kK);
            });
          }
          p.problem.sizes.H = 2 * kH;
          int64_t count = apart(shared, outputs(op, p));
          const auto of_each = gradients(op, p);
          for (const char* name : {"dq", "dk"}) {
            const ReferenceOutput &sums = named(back, name), &parts = named(of_each, name);
            for (size_t i = 0; i < sums.mid.size(); ++i) {
              const size_t head = i / kK, first = 2 * head * kK + i % kK;
              const double sum = parts.mid[first] + parts.mid[first + kK];
              const double allowed =
                  sums.rad[i] + parts.rad[first] + parts.rad[first + kK] +
                  0x1p-52 * (std::fabs(parts.mid[first]) + std::fabs(parts.mid[first + kK]));
              count += !(std::fabs(sum - sums.mid[i]) <= allowed);
            }
          }
          return count;
        },
        2 * kH);
}

TEST(DeltaEquivalence, rates_of_channels_that_are_all_the_same_are_the_heads) {
  for_each_decay("gated_delta_rule", [](RandomProblem& p, bool broken) {
    const Tensor beta = p.at("beta");
    const auto of_heads = outputs("gated_delta_rule", p), back = gradients("gated_delta_rule", p);
    p.inputs.erase("beta");
    set(p, "beta_v", p.at("v").axes,
        [&](int64_t i) { return broken && i == 5 ? 0.125 : beta.value(i / kV); });
    const auto back_of_channels = gradients("gated_delta_rule", p);
    int64_t count = apart(of_heads, outputs("gated_delta_rule", p));
    const ReferenceOutput &sums = named(back, "dbeta"), &parts = named(back_of_channels, "dbeta_v");
    for (size_t i = 0; i < sums.mid.size(); ++i) {
      double sum = 0, allowed = sums.rad[i];
      for (size_t j = i * kV; j < (i + 1) * kV; ++j)
        sum += parts.mid[j], allowed += parts.rad[j] + 0x1p-50 * std::fabs(parts.mid[j]);
      count += !(std::fabs(sum - sums.mid[i]) <= allowed);
    }
    return count;
  });
}

/// dg_t = <S_T, dS_T> + sum over later tokens of q dq - v dv (operators.md's gauge), without any state.
TEST(DeltaEquivalence, gradients_of_gates_are_running_sums_of_q_dq_minus_v_dv) {
  for_each_decay("gated_delta_rule", [](RandomProblem& p, bool broken) {
    const auto y = outputs("gated_delta_rule", p), d = gradients("gated_delta_rule", p);
    const ReferenceOutput &S = named(y, "final_state"), &dg = named(d, "dg");
    int64_t count = 0;
    for (int64_t h = 0; h < kH; ++h) {
      double sum = 0, allowed = 0;
      const auto term = [&](const ReferenceOutput& x, int64_t i, double factor) {
        const auto at = static_cast<size_t>(i);
        sum += factor * x.mid[at],
            allowed += std::fabs(factor) * (x.rad[at] + 0x1p-46 * std::fabs(x.mid[at]));
      };
      for (int64_t i = h * kK * kV; i < (h + 1) * kK * kV; ++i) term(S, i, p.at("dfinal_state").value(i));
      for (int64_t t = kT; t-- > 0;) {
        const int64_t row = t * kH + h;
        for (int64_t i = row * kK; i < (row + 1) * kK; ++i) term(named(d, "dq"), i, p.at("q").value(i));
        for (int64_t i = row * kV; !broken && i < (row + 1) * kV; ++i)
          term(named(d, "dv"), i, -p.at("v").value(i));
        const auto at = static_cast<size_t>(row);
        count += !(std::fabs(sum - dg.mid[at]) <= allowed + dg.rad[at]);
      }
    }
    return count;
  });
}

}  // namespace delta_equivalences_test
}  // namespace assay
