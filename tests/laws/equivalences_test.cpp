// Operators that are one another in disguise: their evaluations, made from different transcriptions, must
// meet within the sum of their enclosures. Each has a broken twin.
#include <gtest/gtest.h>

#include <functional>

#include "reference/operator.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace equivalences_test {

ReferenceResult evaluate(const char* op, const RandomProblem& p) {
  return find_operator(op).evaluate(p.problem);
}

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

Tensor filled(const char* name, std::vector<Axis> axes, const std::function<double(int64_t)>& value) {
  Tensor tensor(name, Dtype::fp64, std::move(axes));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value(i));
  return tensor;
}

void draw(const char* op, const std::string& decay, const RandomShape& shape, uint64_t seed,
          RandomProblem& p) {
  draw_problem_of(find_operator(op), decay, shape, seed, p);
  p.problem.arithmetic = recurrent_fp32(shape.K);
}

const char* const kDecays[] = {"none", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"};

RandomShape small() {
  RandomShape shape;
  shape.B = 2, shape.T = 19, shape.H = 3, shape.K = 5, shape.V = 4;
  return shape;
}

/// `check(p, other, broken)` counts disagreements of two problems it derives from a drawn one.
void for_each_decay(const char* op, const std::function<int64_t(RandomProblem&, RandomProblem&, bool)>& check,
                    const RandomShape& shape = small()) {
  uint64_t seed = 1;
  int64_t seen = 0;
  for (const char* decay : kDecays) {
    RandomProblem p, other, twin, twin_other;
    draw(op, decay, shape, seed, p), draw(op, decay, shape, seed, other);
    draw(op, decay, shape, seed, twin), draw(op, decay, shape, seed, twin_other);
    EXPECT_EQ(check(p, other, false), 0) << op << " " << decay << " seed " << seed;
    seen += check(twin, twin_other, true), ++seed;
  }
  EXPECT_GT(seen, 0) << op << ": the broken twin went unseen";
}

TEST(Equivalence, gla_with_one_gate_for_all_channels_is_simple_gla) {
  for_each_decay("simple_gla", [](RandomProblem& p, RandomProblem& wide, bool broken) {
    const Tensor g = p.at("g");
    const int64_t K = p.problem.sizes.K;
    wide.inputs["g"] =
        filled("g", p.at("q").axes, [&](int64_t i) { return i % K == 1 && broken ? -1.0 : g.value(i / K); });
    return apart(evaluate("simple_gla", p), evaluate("gla", wide));
  });
}

TEST(Equivalence, simple_gla_without_a_gate_is_linear_attention_and_so_is_the_first_head_of_lightning) {
  for_each_decay("linear_attn", [](RandomProblem& p, RandomProblem& other, bool broken) {
    if (broken) other.inputs["g_gamma"] = filled("g_gamma", {{"H", 3}}, [](int64_t) { return -0.01; });
    const auto plain = evaluate("linear_attn", p), lightning = evaluate("lightning_attn", p);
    int64_t count = apart(plain, evaluate("simple_gla", other));
    const int64_t V = p.problem.sizes.V, H = p.problem.sizes.H;
    for (size_t i = 0; i < plain.outputs[0].mid.size(); ++i)
      if (static_cast<int64_t>(i) / V % H == 0)
        count += plain.outputs[0].mid[i] != lightning.outputs[0].mid[i];
    return count;
  });
}

TEST(Equivalence, simple_gla_with_constant_gates_is_its_form_with_one_gate_per_head_and_has_that_gradient) {
  RandomShape shape = small();
  shape.cotangents = true;
  for_each_decay(
      "simple_gla",
      [](RandomProblem& p, RandomProblem& head, bool broken) {
        const Tensor drawn = p.at("g");
        const auto gamma = [&](int64_t h) { return drawn.value(h); };
        p.inputs["g"] = filled("g", drawn.axes, [&](int64_t i) { return gamma(i % 3); });
        head.inputs.erase("g");
        head.inputs["g_gamma"] =
            filled("g_gamma", {{"H", 3}}, [&](int64_t h) { return gamma(broken ? 0 : h); });
        int64_t count = apart(evaluate("simple_gla", p), evaluate("simple_gla", head));
        const auto of_tokens = find_operator("simple_gla").evaluate_adjoint(p.problem),
                   of_heads = find_operator("simple_gla").evaluate_adjoint(head.problem);
        EXPECT_EQ(of_heads.outputs[3].name, "dg_gamma");
        ReferenceOutput sum = of_heads.outputs[3];
        for (double* x : {sum.mid.data(), sum.rad.data()}) std::fill(x, x + 3, 0);
        const ReferenceOutput& dg = of_tokens.outputs[3];
        for (size_t i = 0; i < dg.mid.size(); ++i) {
          const double before = sum.mid[i % 3];
          sum.mid[i % 3] += dg.mid[i],
              sum.rad[i % 3] += dg.rad[i] + 0x1p-52 * (std::fabs(before) + std::fabs(dg.mid[i]));
        }
        return count + apart(of_heads.outputs[3], sum);
      },
      shape);
}

TEST(Equivalence, retention_and_lightning_are_simple_gla_with_their_decays) {
  for (const char* name : {"retention", "lightning_attn"})
    for_each_decay(name, [&](RandomProblem& p, RandomProblem& other, bool broken) {
      p.problem.parameters = {{"layer_idx", 3}, {"num_layers", 8}};
      other.inputs["g_gamma"] = filled("g_gamma", {{"H", 3}}, [&](int64_t h) {
        const double x = static_cast<double>(broken ? h + 1 : h);
        return *name == 'r' ? std::log1p(-std::ldexp(1, static_cast<int>(-5 - x)))
                            : -(8.0 / 3) * (1 - 3.0 / 8) * x;
      });
      auto given = evaluate("simple_gla", other);
      // The decays given are rounded: 2^-52 of |g| <= 4 per token, to every term.
      for (ReferenceOutput& out : given.outputs)
        for (size_t i = 0; i < out.rad.size(); ++i) out.rad[i] += 0x1p-50 * 19 * out.companion[i];
      return apart(evaluate(name, p), given);
    });
}

TEST(Equivalence, hgrn_is_gla_with_one_channel) {
  RandomShape shape;
  shape.B = 2, shape.T = 19, shape.V = 6;
  for_each_decay(
      "hgrn",
      [](RandomProblem& p, RandomProblem& other, bool broken) {
        const int64_t D = p.problem.sizes.V, T = p.problem.sizes.T;
        const std::vector<Axis> axes = {{"B", 2}, {"T", T}, {"H", D}, {"K", 1}};
        const Tensor x = p.at("x"), g = p.at("g"), h0 = p.at("initial_state");
        other.inputs.clear();
        for (const char* name : {"q", "k"})
          other.inputs[name] = filled(name, axes, [](int64_t) { return 1; });
        other.inputs["v"] = filled("v", axes, [&](int64_t i) { return x.value(i); });
        other.inputs["g"] = filled("g", axes, [&](int64_t i) { return broken && i > 20 ? 0 : g.value(i); });
        other.inputs["initial_state"] = filled("initial_state", {{"N", 2}, {"H", D}, {"K", 1}, {"V", 1}},
                                               [&](int64_t i) { return h0.value(i); });
        other.problem.sizes = {2, T, D, D, 1, 1, 1, 2};
        other.problem.scale = 1;
        return apart(evaluate("hgrn", p), evaluate("gla", other));
      },
      shape);
}

TEST(Equivalence, gla_is_rwkv6_that_reads_through_the_decay_plus_the_tokens_own_term) {
  RandomShape shape = small();
  shape.B = shape.H = 1;
  for_each_decay(
      "gla",
      [](RandomProblem& p, RandomProblem& other, bool broken) {
        // u = 1 at decay 1: where w_t = 0 the exclusive readout with u = 1 is the inclusive one.
        const Tensor g = p.at("g");
        other.inputs["r"] = p.at("q"), other.inputs["w"] = g;
        other.inputs["u"] = filled("u", {{"H", 1}, {"K", 5}}, [&](int64_t) { return broken ? 0.5 : 1; });
        const auto exclusive = evaluate("rwkv6", other), inclusive = evaluate("gla", p);
        int64_t count = apart(exclusive.outputs[1], inclusive.outputs[1]);
        for (int64_t t = 0; t < 19; ++t) {
          bool still = true;
          for (int64_t c = 0; c < 5; ++c) still = still && g.value(t * 5 + c) == 0;
          for (int64_t j = t * 4; still && j < (t + 1) * 4; ++j) {
            const auto i = static_cast<size_t>(j);
            count += !(std::fabs(exclusive.outputs[0].mid[i] - inclusive.outputs[0].mid[i]) <=
                       exclusive.outputs[0].rad[i] + inclusive.outputs[0].rad[i]);
          }
        }
        return count;
      },
      shape);
}

TEST(Equivalence, rwkv7_without_removal_is_gla) {
  for_each_decay("gla", [](RandomProblem& p, RandomProblem& other, bool broken) {
    other.inputs["r"] = p.at("q"), other.inputs["w"] = p.at("g");
    other.inputs["a"] = filled("a", p.at("q").axes, [&](int64_t) { return broken ? 0.1 : 0; });
    other.inputs["b"] = p.at("k");
    return apart(evaluate("rwkv7", other), evaluate("gla", p));
  });
}

TEST(Equivalence, gated_slot_attention_with_one_slot_is_hgrn_of_what_is_written) {
  RandomShape shape = small();
  shape.B = shape.H = shape.M = 1;
  for_each_decay(
      "gsa",
      [](RandomProblem& p, RandomProblem& other, bool broken) {
        const Tensor s = p.at("s"), v = p.at("v"), g = p.at("g"), h0 = p.at("hv0");
        const std::vector<Axis> axes = {{"B", 1}, {"T", 19}, {"D", 4}};
        other.inputs.clear();
        // Products of two fp32 numbers are doubles.
        other.inputs["x"] = filled("x", axes, [&](int64_t i) { return s.value(i / 4) * v.value(i); });
        other.inputs["g"] = filled("g", axes, [&](int64_t i) { return g.value(broken ? 0 : i / 4); });
        other.inputs["initial_state"] =
            filled("initial_state", {{"N", 1}, {"D", 4}}, [&](int64_t i) { return h0.value(i); });
        other.problem.sizes.V = 4;
        return apart(evaluate("gsa", p).outputs[0], evaluate("hgrn", other).outputs[0]);
      },
      shape);
}

TEST(Equivalence, normalised_attention_of_constant_values_is_nearly_that_value) {
  RandomProblem p;
  draw("linear_attn_norm", "none", small(), 3, p);
  p.inputs.erase("initial_state"), p.inputs.erase("z0");
  p.inputs["v"] = filled("v", p.at("v").axes, [](int64_t) { return 3; });
  // n = 3 (d - eps), so that o = 3 - 3 eps / d, and with |q||k| > 2^-10 the difference stays below 3 eps
  // 2^20.
  const auto o = evaluate("linear_attn_norm", p).outputs[0];
  for (size_t i = 0; i < o.mid.size(); ++i) {
    EXPECT_NEAR(o.mid[i], 3, 3e-10 * 0x1p20 + o.rad[i]);
    EXPECT_LT(o.mid[i], 3) << "eps is missing";
  }
}

TEST(Equivalence, gla_gradients_of_gates_are_running_sums_of_q_dq_minus_k_dk) {
  RandomShape shape;
  shape.T = 23, shape.K = 4, shape.V = 3, shape.cotangents = true;
  {
    const char* const name = "gla";
    for (const char* decay : kDecays) {
      RandomProblem p;
      draw(name, decay, shape, 5, p);
      const auto y = find_operator(name).evaluate(p.problem),
                 d = find_operator(name).evaluate_adjoint(p.problem);
      int64_t seen = 0;
      for (int64_t c = 0; c < 4; ++c) {
        double sum = 0, allowed = 0;
        for (int64_t j = 0; j < 3; ++j) {
          const auto i = static_cast<size_t>(c * 3 + j);
          const double dS = p.at("dfinal_state").value(c * 3 + j);
          sum += y.outputs[1].mid[i] * dS, allowed += y.outputs[1].companion[i] * std::fabs(dS);
        }
        for (int64_t t = 22; t >= 0; --t) {
          const auto i = static_cast<size_t>(t * 4 + c);
          const double q = p.at("q").value(t * 4 + c), k = p.at("k").value(t * 4 + c);
          sum += q * d.outputs[0].mid[i] - k * d.outputs[1].mid[i];
          allowed += std::fabs(q) * d.outputs[0].companion[i] + std::fabs(k) * d.outputs[1].companion[i];
          // Fewer than 2^10 roundings of 2^-53 of the terms, radii included.
          EXPECT_LE(std::fabs(sum - d.outputs[3].mid[i]), 0x1p-43 * allowed)
              << decay << " t=" << t << " c=" << c;
          seen += std::fabs(d.outputs[3].mid[i]) > 0x1p-40 * allowed;
        }
      }
      EXPECT_GT(seen, 0) << decay;
    }
  }
}

TEST(Equivalence, every_linear_readout_obeys_eulers_identity_token_by_token) {
  RandomShape shape;
  shape.T = 17, shape.K = 4, shape.V = 3, shape.cotangents = true;
  for (const char* name :
       {"linear_attn", "simple_gla", "gla", "retention", "lightning_attn", "rwkv6", "rwkv7", "delta_rule",
        "gated_delta_rule", "kda", "comba", "gated_delta_product"}) {
    RandomProblem p;
    draw(name, "logsigmoid", shape, 7, p);
    const Operator& op = find_operator(name);
    const auto y = op.evaluate(p.problem), d = op.evaluate_adjoint(p.problem);
    const std::string q = p.inputs.count("q") ? "q" : "r";
    for (int64_t t = 0; t < 17; ++t) {
      double left = 0, right = 0, allowed = 0;
      for (int64_t c = 0; c < 4; ++c) {
        const auto i = static_cast<size_t>(t * 4 + c);
        left += p.at(q).value(t * 4 + c) * d.outputs[0].mid[i];
        allowed +=
            std::fabs(p.at(q).value(t * 4 + c)) * (d.outputs[0].companion[i] + d.outputs[0].rad[i] * 0x1p40);
      }
      for (int64_t j = 0; j < 3; ++j)
        right += y.outputs[0].mid[static_cast<size_t>(t * 3 + j)] * p.at("do").value(t * 3 + j);
      EXPECT_LE(std::fabs(left - right), 0x1p-40 * allowed) << name << " t=" << t;
      EXPECT_NE(left, 0) << name;
    }
  }
}

}  // namespace equivalences_test
}  // namespace assay
