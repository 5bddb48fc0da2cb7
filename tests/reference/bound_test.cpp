// The bound of bound.h against kernels whose arithmetic is known.
#include "reference/bound.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/numerics/double_double.h"
#include "tests/reference/model_kernels.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

double count_scale() {
  const char* text = std::getenv("ASSAY_TEST_SCALE");
  return text ? std::atof(text) : 1;
}

/// Many short sequences packed into one problem: each is one run.
struct Batch {
  TensorMap inputs;
  Problem problem;
  std::vector<ModelSlice> slices;
};

struct Draw {
  int64_t runs = 500, longest = 6;
  int exponent_spread = 12;  ///< values are 2^-e, e uniform up to this, around the run's own exponent
  bool limits = false;       ///< the run's exponents reach both ends of fp32
  bool positive = false;
  std::string decay = "";  ///< one profile, or any
};

float draw_value(std::mt19937_64& random, int center, const Draw& draw) {
  std::uniform_real_distribution<double> uniform(1, 2);
  const int exponent = center - static_cast<int>(random() % static_cast<uint64_t>(draw.exponent_spread + 1));
  double x = std::ldexp(uniform(random), std::max(exponent, -160));
  if (!draw.positive && random() % 2) x = -x;
  return static_cast<float>(x);
}

void draw_batch(const Draw& draw, uint64_t seed, Batch& out) {
  static const char* const profiles[] = {"none",  "near-one", "logsigmoid", "strong",
                                         "reset", "ladder",   "extreme"};
  std::mt19937_64 random(seed);
  const int64_t K = 1 + static_cast<int64_t>(random() % 3), V = 1 + static_cast<int64_t>(random() % 2);
  const float scale = static_cast<float>(
      std::ldexp(1 + std::ldexp(static_cast<double>(random() % 1024), -10), -static_cast<int>(random() % 4)));
  out.problem = {};
  out.problem.cu_seqlens = {0};
  out.slices.clear();
  for (int64_t n = 0; n < draw.runs; ++n) {
    ModelSlice x;
    x.T = static_cast<int64_t>(random() % static_cast<uint64_t>(draw.longest + 1)), x.K = K, x.V = V,
    x.scale = scale;
    // Centers: q, k, v anywhere such that some products stay in range; a tenth of the runs goes to the very
    // ends.
    int centers[4];
    for (int& center : centers)
      center = draw.limits ? static_cast<int>(random() % 270) - 145 : static_cast<int>(random() % 20) - 10;
    const std::string decay = draw.decay.empty() ? profiles[random() % 7] : draw.decay;
    for (int64_t i = 0; i < x.T * K; ++i) {
      x.q.push_back(draw_value(random, centers[0], draw));
      x.k.push_back(draw_value(random, centers[1], draw));
      x.g.push_back(static_cast<float>(draw_decay(decay, random)));
    }
    for (int64_t i = 0; i < x.T * V; ++i) x.v.push_back(draw_value(random, centers[2], draw));
    const bool fresh = random() % 2;
    for (int64_t i = 0; i < K * V; ++i) x.S.push_back(fresh ? 0 : draw_value(random, centers[3], draw));
    x.o.assign(static_cast<size_t>(x.T * V), 0);
    out.problem.cu_seqlens.push_back(out.problem.cu_seqlens.back() + x.T);
    out.slices.push_back(x);
  }
  const int64_t T = out.problem.cu_seqlens.back();
  const auto tensor = [&](const char* name, std::vector<Axis> axes, std::vector<float> ModelSlice::*member) {
    Tensor t(name, Dtype::fp32, std::move(axes));
    float* to = t.as<float>().data();
    for (const ModelSlice& x : out.slices) to = std::copy((x.*member).begin(), (x.*member).end(), to);
    out.inputs[name] = t;
  };
  tensor("q", {{"B", 1}, {"T", T}, {"H", 1}, {"K", K}}, &ModelSlice::q);
  tensor("k", {{"B", 1}, {"T", T}, {"H", 1}, {"K", K}}, &ModelSlice::k);
  tensor("g", {{"B", 1}, {"T", T}, {"H", 1}, {"K", K}}, &ModelSlice::g);
  tensor("v", {{"B", 1}, {"T", T}, {"H", 1}, {"V", V}}, &ModelSlice::v);
  tensor("initial_state", {{"N", draw.runs}, {"H", 1}, {"K", K}, {"V", V}}, &ModelSlice::S);
  out.problem.sizes = {1, T, 1, 1, K, V, 1, draw.runs};
  out.problem.scale = scale;
  out.problem.inputs = &out.inputs;
}

struct Worst {
  double ratio = 0;
  int64_t outside = 0, judged = 0, runs = 0;
  std::string first;  ///< the first element outside
};

template <typename Value>
void judge(const ReferenceOutput& reference, size_t at, Value got, uint64_t seed, Worst& worst) {
  const double bound = reference.bound[at], largest = std::fabs(reference.mid[at]) + bound;
  if (!(largest < max_finite(Dtype::fp32))) return;  // overflow: judged by class elsewhere
  ++worst.judged;
  const double error = std::fabs(double{got} - reference.mid[at]) - reference.rad[at];
  if (error <= 0) return;
  const double ratio = error / bound;
  if (!(ratio <= 1)) {
    if (worst.outside++ == 0)
      worst.first = reference.name + "[" + std::to_string(at) + "] got " + std::to_string(got) +
                    ", error / bound " + std::to_string(ratio) + ", seed " + std::to_string(seed);
  }
  worst.ratio = std::isnan(ratio) ? HUGE_VAL : std::fmax(worst.ratio, ratio);
}

/// The errors among the numbers of the recurrence.
std::vector<double Arithmetic::*> recurrence_errors() {
  std::vector<double Arithmetic::*> list;
  for (const auto& field : kArithmeticFields)
    if (field.family == "recurrence" && field.unit != ArithmeticUnit::tokens &&
        field.unit != ArithmeticUnit::roundoff)
      list.push_back(std::get<double Arithmetic::*>(field.member));
  return list;
}

const Arithmetic kAsDeclared = [] {
  Arithmetic ones;
  for (const auto coefficient : recurrence_errors()) ones.*coefficient = 1;
  return ones;
}();

enum class Model { recurrent, chunk, worst_case };

void run_batch(Model model, const Draw& draw, bool flush, const Arithmetic& scaled_by, uint64_t seed,
               Worst& worst) {
  Batch batch;
  draw_batch(draw, seed, batch);
  const int64_t K = batch.problem.sizes.K;
  Arithmetic a =
      model == Model::chunk ? ChunkModel::arithmetic(K, flush) : RecurrentModel::arithmetic(K, flush);
  if (model == Model::worst_case && seed % 2) {
    a = ChunkModel::arithmetic(K, flush);
    a.chunk = 3, a.crossing = 0x1p-18, a.crossing_per_nat = 0x1p-18, a.prefix_per_nat = 0x1p-16;
    a.write_decayed = 0x1p-18, a.readout_decayed = 0x1p-18;
    a.write_scaled = 0x1p-15, a.readout_scaled = 0x1p-14;
  }
  const Arithmetic truth = a;
  for (const auto coefficient : recurrence_errors()) a.*coefficient *= scaled_by.*coefficient;
  batch.problem.arithmetic = a;
  const auto result = find_operator("gla").evaluate(batch.problem);
  const auto &o = result.outputs[0], &S = result.outputs[1];
  std::mt19937_64 random(seed + 1);
  const RecurrentModel recurrent{{flush}, &random};
  const auto gates = batch.inputs.at("g").as<float>();
  const bool decays = std::any_of(gates.begin(), gates.end(), [](float g) { return g != 0; });
  size_t at_o = 0, at_S = 0;
  for (ModelSlice& x : batch.slices) {
    ++worst.runs;
    std::vector<double> worst_o, worst_S;
    if (model == Model::worst_case) WorstCaseModel::run(x, truth, decays, worst_o, worst_S);
    if (model == Model::recurrent) recurrent.run(x);
    if (model == Model::chunk) ChunkModel(recurrent).run(x);
    for (size_t i = 0; i < x.o.size(); ++i)
      judge(o, at_o++, model == Model::worst_case ? worst_o[i] : double{x.o[i]}, seed, worst);
    for (size_t i = 0; i < x.S.size(); ++i)
      judge(S, at_S++, model == Model::worst_case ? worst_S[i] : double{x.S[i]}, seed, worst);
  }
}

Worst run_batches(Model model, const Draw& draw, bool flush, int batches,
                  const Arithmetic& scaled_by = kAsDeclared) {
  Worst worst;
  const int count = std::max(1, static_cast<int>(batches * count_scale()));
  for (int i = 0; i < count; ++i)
    run_batch(model, draw, flush, scaled_by, static_cast<uint64_t>(i) + 1000, worst);
  return worst;
}

TEST(Bound, holds_for_random_runs_of_the_fp32_recurrence_at_the_exponent_limits) {
  for (bool flush : {false, true})
    for (bool limits : {true, false}) {
      Draw draw;
      draw.limits = limits, draw.runs = 2000;
      const Worst worst = run_batches(Model::recurrent, draw, flush, 120);
      EXPECT_EQ(worst.outside, 0) << worst.first;
      std::printf("recurrent %s %s: %ld runs, %ld elements judged, largest error / bound %.3f\n",
                  flush ? "flushing" : "gradual", limits ? "at the limits" : "near one", worst.runs,
                  worst.judged, worst.ratio);
    }
}

TEST(Bound, holds_for_random_runs_of_the_chunk_algorithm_at_the_exponent_limits) {
  for (bool flush : {false, true})
    for (bool limits : {true, false}) {
      Draw draw;
      draw.limits = limits, draw.longest = 12;
      const Worst worst = run_batches(Model::chunk, draw, flush, 100);
      EXPECT_EQ(worst.outside, 0) << worst.first;
      Draw longer = draw;
      longer.longest = 200, longer.runs = 100;
      const Worst across = run_batches(Model::chunk, longer, flush, 4);
      EXPECT_EQ(across.outside, 0) << across.first;
      std::printf("chunk %s %s: %ld + %ld runs, largest error / bound %.3f, %.3f\n",
                  flush ? "flushing" : "gradual", limits ? "at the limits" : "near one", worst.runs,
                  across.runs, worst.ratio, across.ratio);
    }
}

TEST(Bound, is_reached_by_arithmetic_that_errs_as_far_as_it_declares) {
  Draw draw;
  draw.positive = true;
  const Worst worst = run_batches(Model::worst_case, draw, false, 20);
  EXPECT_EQ(worst.outside, 0) << worst.first;
  EXPECT_GT(worst.ratio, 0.999);
}

TEST(Bound, with_any_coefficient_halved_below_the_truth_is_seen_to_fail) {
  for (const auto coefficient : recurrence_errors()) {
    if (coefficient == &Arithmetic::underflow) continue;  // see the next test
    Arithmetic halved = kAsDeclared;
    halved.*coefficient = 0.5;
    Draw draw;
    draw.positive = true;
    const auto outside = run_batches(Model::worst_case, draw, false, 20, halved).outside;
    // What tells the statistic how roundings fall is no part of the bound.
    if (coefficient == &Arithmetic::truncated || coefficient == &Arithmetic::single)
      EXPECT_EQ(outside, 0);
    else
      EXPECT_GT(outside, 0);
  }
}

/// Tokens that cancel the one before: what is left of the state is what its roundings are relative to.
ModelSlice cancelling(int64_t T) {
  ModelSlice x{T, 1, 1, {}, {}, {}, {}, {0}, std::vector<float>(static_cast<size_t>(T)), 1};
  for (int64_t t = 0; t < T; ++t) {
    x.q.push_back(1), x.k.push_back(1), x.g.push_back(0);
    x.v.push_back(t % 2 ? -x.v.back() : 1 + 0x1p-10f * static_cast<float>(t));
  }
  return x;
}
ReferenceResult evaluated(const ModelSlice& x, const Arithmetic& a) {
  TensorMap inputs;
  const auto tensor = [&](const char* name, const std::vector<float>& values) {
    Tensor t(name, Dtype::fp32, {{"B", 1}, {"T", x.T}, {"H", 1}, {"K", 1}});
    std::copy(values.begin(), values.end(), t.as<float>().data());
    inputs[name] = t;
  };
  tensor("q", x.q), tensor("k", x.k), tensor("g", x.g), tensor("v", x.v);
  Problem problem;
  problem.sizes = {1, x.T, 1, 1, 1, 1, 1, 1};
  problem.inputs = &inputs;
  problem.arithmetic = a;
  return find_operator("gla").evaluate(problem);
}

TEST(Bound, of_a_stored_state_is_relative_to_what_is_left_of_its_terms) {
  ModelSlice x = cancelling(1000);
  Arithmetic a = RecurrentModel::arithmetic(1, false);
  const ReferenceOutput stored = evaluated(x, a).outputs[0];
  a.stored = 0;
  const ReferenceOutput apart = evaluated(x, a).outputs[0];
  EXPECT_LT(stored.bound.back(), apart.bound.back() / 2);
  std::mt19937_64 random(1);
  RecurrentModel{{false}, &random}.run(x);
  for (size_t i = 0; i < x.o.size(); ++i) {
    EXPECT_LE(std::fabs(double{x.o[i]} - stored.mid[i]), stored.bound[i]) << i;
    EXPECT_LE(stored.companion[i], apart.companion[i] * (1 + 1e-9)) << i;
  }
}

/// Of a sequence shorter than what lies between two stored states, the last one is stored nevertheless.
TEST(Bound, counts_the_evaluators_own_roundings_of_terms_that_cancel_in_the_last_state) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  Arithmetic a = RecurrentModel::arithmetic(1, false);
  for (const int64_t stored : {2, 4, 64}) {
    a.stored = stored;
    for (int n = 0; n < 300; ++n) {
      ModelSlice x{3, 1, 1, {1, 1, 1}, {}, {0, 0, 0}, {}, {}, {}, 1};
      DoubleDouble sum;
      for (int t = 0; t < 3; ++t) {
        x.k.push_back(t < 2 ? uniform(random) : 1);
        x.v.push_back(t < 2 ? -uniform(random) : static_cast<float>(-sum.hi));
        sum = sum + DoubleDouble(double{x.k.back()} * double{x.v.back()});
      }
      const ReferenceOutput state = evaluated(x, a).outputs[1];
      EXPECT_LE(std::fabs((DoubleDouble(state.mid[0]) - sum).hi), state.rad[0]) << stored << " " << n;
    }
  }
}

/// Every path is rounded by itself, in the worst direction, and no state is ever one number.
TEST(Bound, of_stored_states_does_not_hold_for_a_kernel_that_never_stores_one) {
  const ModelSlice x = cancelling(100);
  Arithmetic a;
  a.readout = 0x1p-8, a.step = 0x1p-30;
  for (const int64_t stored : {0, 1, 10}) {
    a.stored = stored;
    const ReferenceOutput o = evaluated(x, a).outputs[0];
    double paths = 0;
    bool outside = false;
    for (size_t t = 0; t < x.v.size(); ++t) {
      paths += std::fabs(x.v[t]) * 0x1p-8;
      outside |= paths > o.bound[t] * (1 + 1e-9);
    }
    EXPECT_EQ(outside, stored > 0) << stored;
  }
}

TEST(Bound, without_its_underflow_terms_is_seen_to_fail) {
  Arithmetic none = kAsDeclared;
  none.underflow = 0;
  Draw draw;
  draw.limits = true;
  for (bool flush : {false, true}) EXPECT_GT(run_batches(Model::recurrent, draw, flush, 20, none).outside, 0);
}

TEST(Bound, is_tight_for_the_fp32_recurrence_up_to_1024_tokens) {
  for (const char* decay : {"none", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"})
    for (int64_t T : {64, 1024}) {
      RandomShape shape;
      shape.T = T, shape.K = 64, shape.V = 16, shape.decay = decay;
      RandomProblem p;
      draw_problem(shape, 7, p);
      p.problem.scale = 0.125;
      p.problem.arithmetic = RecurrentModel::arithmetic(64, false);
      const auto result = find_operator("gla").evaluate(p.problem);
      std::mt19937_64 random(1);
      ModelSlice x{T, 64, 16, {}, {}, {}, {}, {}, std::vector<float>(static_cast<size_t>(T * 16)), 0.125f};
      const auto copy = [&](const char* name) {
        const auto values = p.at(name).as<float>();
        return std::vector<float>(values.begin(), values.end());
      };
      x.q = copy("q"), x.k = copy("k"), x.g = copy("g"), x.v = copy("v"), x.S = copy("initial_state");
      RecurrentModel{{false}, &random}.run(x);
      Worst worst;
      for (size_t i = 0; i < x.o.size(); ++i) judge(result.outputs[0], i, x.o[i], 7, worst);
      EXPECT_EQ(worst.outside, 0) << decay << " " << worst.first;
      EXPECT_GE(worst.ratio, 0.01) << decay << " T=" << T;
      std::printf("%s T=%ld: largest error / bound %.4f\n", decay, T, worst.ratio);
    }
}

TEST(Bound, is_infinite_where_an_intermediate_may_overflow_and_finite_below) {
  for (int exponent : {30, 70}) {
    Batch batch;
    Draw draw;
    draw.runs = 1, draw.longest = 1;
    uint64_t seed = 1;
    do draw_batch(draw, seed++, batch);
    while (batch.slices[0].T != 1);
    for (const char* name : {"k", "v"})
      for (int64_t i = 0; i < batch.inputs[name].size(); ++i)
        batch.inputs[name].set(i, std::ldexp(1.0, exponent));
    batch.problem.arithmetic = RecurrentModel::arithmetic(batch.problem.sizes.K, false);
    const auto result = find_operator("gla").evaluate(batch.problem);
    EXPECT_EQ(std::isinf(result.outputs[0].bound[0]), exponent == 70);
    EXPECT_EQ(result.outputs[0].undecided.empty(), exponent == 30);
  }
}

TEST(Bound, is_infinite_where_an_operand_alone_may_overflow_in_its_format) {
  for (const char* name : {"k", "v", "initial_state"}) {
    RandomShape shape;
    shape.T = 20, shape.dtype = Dtype::fp32;
    RandomProblem p;
    draw_problem(shape, 3, p);
    for (const char* small : {"q", "k", "v", "initial_state"})
      for (int64_t i = 0; i < p.at(small).size(); ++i) p.at(small).set(i, 0x1p-30);
    p.problem.arithmetic = RecurrentModel::arithmetic(p.problem.sizes.K, false);
    p.at(name).set(p.at(name).size() - 1, 0x1.fffffep127);
    const auto state = find_operator("gla").evaluate(p.problem).outputs[1];
    EXPECT_TRUE(std::isinf(state.bound.back())) << name;
  }
}

TEST(Bound, of_exact_arithmetic_on_integers_is_zero_and_so_is_the_radius) {
  RandomShape shape;
  shape.T = 100, shape.decay = "absent", shape.dtype = Dtype::bf16;
  RandomProblem p;
  draw_problem(shape, 3, p);
  for (const char* name : {"q", "k", "v", "initial_state"})
    for (int64_t i = 0; i < p.at(name).size(); ++i)
      p.at(name).set(i, std::nearbyint(4 * p.at(name).value(i)));
  p.problem.scale = 0.25;
  for (const auto& out : find_operator("gla").evaluate(p.problem).outputs)
    for (size_t i = 0; i < out.mid.size(); ++i) {
      EXPECT_EQ(out.bound[i], 0) << out.name;
      EXPECT_EQ(out.rad[i], 0) << out.name;
    }
}

}  // namespace
}  // namespace assay
