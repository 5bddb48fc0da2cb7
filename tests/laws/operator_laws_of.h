// The laws of operator_laws.h for one operator's type. Heavy: include in sources only.
#pragma once
#include <algorithm>
#include <map>
#include <random>

#include "reference/literal_slice.h"
#include "tests/laws/operator_laws.h"
#include "tests/reference/random_problem.h"

namespace assay {

template <typename Op>
Operator specifications_of() {
  Operator op;
  op.inputs = Op::inputs(), op.outputs = Op::outputs();
  if constexpr (Op::traits.parameters != nullptr) op.parameters = Op::traits.parameters();
  return op;
}

/// One problem and its last head's slice.
template <typename Op>
struct LawProblem {
  Operator op = specifications_of<Op>();
  RandomProblem drawn;
  SliceProblem slice;

  LawProblem(const std::string& decay, const LawShape& s, uint64_t seed, Dtype dtype) {
    RandomShape shape;
    shape.T = s.T, shape.H = s.H, shape.K = s.K, shape.V = s.V, shape.M = s.M, shape.cotangents = true;
    shape.dtype = dtype;
    draw_problem_of(op, decay, shape, seed, drawn);
    slice = read(Op::traits.per_head ? s.H - 1 : 0);
  }
  SliceProblem read(int64_t head) const {
    return read_slice(drawn.problem, op.inputs, op.outputs, op.parameters,
                      Slice{0, head, 0, drawn.problem.sizes.T}, Op::traits.per_head);
  }
};

template <typename Op>
std::vector<AdjointCheck> adjoint_law(const std::string& decay, const LawShape& shape, uint64_t seed) {
  using Real = Interval<60>;
  using D = Dual<Real>;
  const LawProblem<Op> p(decay, shape, seed, Dtype::fp64);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto w = slice_cotangents<Op, Real>(p.slice);
  const auto gradient = Op::adjoint(slice_inputs<Op, Real>(p.slice), w);
  const size_t inputs = p.op.inputs.size();
  std::vector<AdjointCheck> checks;
  for (size_t moved = 0; moved <= inputs; ++moved) {
    auto x = slice_inputs<Op, D>(p.slice);
    std::vector<Matrix<Real>> directions;
    size_t i = 0;
    Op::template Inputs<D>::each(x, [&](std::string_view, Matrix<D>& m) {
      directions.push_back(Matrix<Real>::Constant(m.rows(), m.cols(), Real(0)));
      for (Eigen::Index r = 0; (moved == i || moved == inputs) && r < m.rows(); ++r)
        for (Eigen::Index c = 0; c < m.cols(); ++c)
          m(r, c).tangent = directions.back()(r, c) = Real(normal(random));
      ++i;
    });
    Real backward = 0, forward = 0;
    i = 0;
    Op::template Inputs<Real>::each(gradient, [&](std::string_view, const Matrix<Real>& m) {
      backward += m.cwiseProduct(directions[i++]).sum();
    });
    std::vector<const Matrix<Real>*> cotangents;
    Op::template Outputs<Real>::each(
        w, [&](std::string_view, const Matrix<Real>& m) { cotangents.push_back(&m); });
    i = 0;
    const auto y = Op::forward(x);
    Op::template Outputs<D>::each(y, [&](std::string_view, const Matrix<D>& m) {
      for (Eigen::Index r = 0; r < m.rows(); ++r)
        for (Eigen::Index c = 0; c < m.cols(); ++c) forward += m(r, c).tangent * (*cotangents[i])(r, c);
      ++i;
    });
    const bool all = moved == inputs;
    checks.push_back({all ? "all" : std::string(p.op.inputs[moved].name), enclose<60>(forward - backward),
                      enclose<60>(forward).mid, !all && p.op.inputs[moved].role == Role::log_decay});
  }
  return checks;
}

/// Rows first .. first + count of the matrices that have one row per token; all others whole.
template <typename Op, typename Values, typename Specs>
void take_rows(Values& values, const Specs& specs, Eigen::Index first, Eigen::Index count) {
  size_t i = 0;
  Values::each(values, [&](std::string_view, auto& m) {
    const auto& axes = specs[i++].axes;
    if (std::find(axes.begin(), axes.end(), "T") != axes.end()) m = m.middleRows(first, count).eval();
  });
}

/// The states among an operator's values, in order.
template <typename Values>
std::vector<Matrix<Interval<60>>*> states_of(Values& values, const std::vector<ArgumentSpec>& specs) {
  std::vector<Matrix<Interval<60>>*> states;
  size_t i = 0;
  Values::each(values, [&](std::string_view, Matrix<Interval<60>>& m) {
    if (specs[i++].role == Role::state) states.push_back(&m);
  });
  return states;
}

template <typename Op>
ResumedCheck resumed_law(const std::string& decay, const LawShape& shape, uint64_t seed) {
  using Real = Interval<60>;
  const LawProblem<Op> p(decay, shape, seed, Dtype::fp64);
  const Eigen::Index T = shape.T, cut = T / 2;
  const auto x = slice_inputs<Op, Real>(p.slice);
  const auto d = slice_cotangents<Op, Real>(p.slice);
  auto first = x, second = x;
  auto d_first = d, d_second = d;
  take_rows<Op>(first, p.op.inputs, 0, cut), take_rows<Op>(second, p.op.inputs, cut, T - cut);
  take_rows<Op>(d_first, p.op.outputs, 0, cut), take_rows<Op>(d_second, p.op.outputs, cut, T - cut);
  auto whole = Op::forward(x), y1 = Op::forward(first);
  const auto carried = states_of(y1, p.op.outputs), into = states_of(second, p.op.inputs);
  for (size_t i = 0; i < into.size(); ++i) *into[i] = *carried[i];
  auto y2 = Op::forward(second);
  auto g = Op::adjoint(x, d), g2 = Op::adjoint(second, d_second);
  const auto back = states_of(g2, p.op.inputs), out = states_of(d_first, p.op.outputs);
  for (size_t i = 0; i < back.size(); ++i) *out[i] = *back[i];
  auto g1 = Op::adjoint(first, d_first);
  ResumedCheck check;
  const auto compare = [&](auto& all, auto& early, auto& late, const auto& specs, bool gradient) {
    std::vector<Matrix<Real>*> a, e, l;
    using V = std::remove_cvref_t<decltype(all)>;
    V::each(all, [&](std::string_view, Matrix<Real>& m) { a.push_back(&m); });
    V::each(early, [&](std::string_view, Matrix<Real>& m) { e.push_back(&m); });
    V::each(late, [&](std::string_view, Matrix<Real>& m) { l.push_back(&m); });
    for (size_t i = 0; i < a.size(); ++i) {
      const auto& axes = specs[i].axes;
      Matrix<Real> joined = *l[i];  // final states
      if (std::find(axes.begin(), axes.end(), "T") != axes.end()) {
        joined.resize(T, l[i]->cols());
        for (Eigen::Index t = 0; t < T; ++t) joined.row(t) = t < cut ? e[i]->row(t) : l[i]->row(t - cut);
      } else if (gradient) {
        if (specs[i].role == Role::state)
          joined = *e[i];  // of initial states
        else
          joined += *e[i];  // of inputs that all tokens share
      }
      for (Eigen::Index r = 0; r < joined.rows(); ++r)
        for (Eigen::Index c = 0; c < joined.cols(); ++c) {
          const Ball<double> off = enclose<60>(joined(r, c) - (*a[i])(r, c));
          check.all_hold_zero &= std::abs(off.mid) <= off.rad;
          check.widest = std::max(check.widest, off.rad);
        }
    }
  };
  compare(whole, y1, y2, p.op.outputs, false);
  compare(g, g1, g2, p.op.inputs, true);
  return check;
}

/// What the transcription over fp32 does: products, sums in any order, one exponential of at most 2 u.
inline Arithmetic transcribed(const Sizes& s, double share) {
  const double u = share * 0x1p-24, sums = static_cast<double>(s.K + s.V + s.M + 16 + s.H * s.V) * 1.001;
  Arithmetic a;
  a.decay = 3.01 * u, a.write = 2.01 * u, a.step = 2.01 * u, a.readout = sums * u, a.stored = 1;
  a.bonus = 4.01 * u, a.divide = sums * u, a.logits = sums * u, a.logits_per_nat = u, a.removal = sums * u;
  a.own_sum = a.own_weights = 8 * u, a.own_weights_per_nat = u;
  a.underflow = 0x1p-149;
  return a;
}

/// Declares it, every relative error `share` of the true one.
inline void declare_transcription(Problem& problem, double share) {
  problem.scale = 0.5;
  const Sizes& s = problem.sizes;
  problem.arithmetic = transcribed(s, share);
  AdjointArithmetic& d = problem.adjoint;
  d.state = d.adjoint = problem.arithmetic;
  const double u = share * 0x1p-24, sums = problem.arithmetic.readout;
  d.value_readout = d.inner = d.bonus = 2 * sums;
  d.gate_readout = static_cast<double>(s.K * s.V + 8) * u;
  d.total = static_cast<double>(s.T * s.K + 8) * u;
}

/// The transcription over fp32 against the bounds of what is declared.
template <typename Op>
std::vector<Fp32Check> judged_transcription(const LawProblem<Op>& p) {
  const Problem& problem = p.drawn.problem;
  const Operator& op = find_operator(Op::name);
  std::vector<Fp32Check> checks;
  const auto judge = [&](const ReferenceResult& reference, bool gradient) {
    const auto& specs = gradient ? p.op.inputs : p.op.outputs;
    std::map<std::string, std::vector<float>> got;
    const int64_t heads = Op::traits.per_head ? p.slice.heads : 1;
    for (int64_t h = 0; h < heads; ++h) {
      const SliceProblem x = p.read(h);
      size_t i = 0;
      const auto take = [&](std::string_view, const Matrix<float>& m) {
        const ArgumentSpec& spec = specs[i++];
        const SliceLayout layout(spec, problem.sizes, Op::traits.per_head);
        auto& out = got[(gradient ? "d" : "") + std::string(spec.name)];
        out.resize(static_cast<size_t>(layout.size()));
        const Eigen::Index width = m.cols() / layout.parts();
        for (Eigen::Index r = 0; r < m.rows(); ++r)
          for (Eigen::Index c = 0; c < m.cols(); ++c)
            out[static_cast<size_t>(layout.row(x.slice, x.heads, r, c / width) + c % width)] += m(r, c);
      };
      const auto in = slice_inputs<Op, float>(x);
      if (gradient) {
        const auto y = Op::adjoint(in, slice_cotangents<Op, float>(x));
        Op::template Inputs<float>::each(y, take);
      } else {
        const auto y = Op::forward(in);
        Op::template Outputs<float>::each(y, take);
      }
    }
    for (const ReferenceOutput& out : reference.outputs) {
      Fp32Check check{out.name};
      for (size_t i = 0; i < out.mid.size(); ++i) {
        check.unbounded += !std::isfinite(out.bound[i]);
        check.exact = check.exact && out.bound[i] == 0;
        ++check.judged;
        const double error = std::fabs(double{got.at(out.name)[i]} - out.mid[i]) - out.rad[i];
        check.outside += !(error <= out.bound[i]);
        if (error > 0) check.ratio = std::fmax(check.ratio, error / out.bound[i]);
      }
      checks.push_back(check);
    }
  };
  judge(op.evaluate(problem), false);
  judge(op.evaluate_adjoint(problem), true);
  return checks;
}

template <typename Op>
std::vector<Fp32Check> fp32_law(const std::string& decay, const LawShape& shape, uint64_t seed,
                                double share) {
  LawProblem<Op> p(decay, shape, seed, Dtype::fp32);
  declare_transcription(p.drawn.problem, share);
  return judged_transcription<Op>(p);
}

/// One element of an input: of another size or sign, a neighbour in the last place, or what cancels or
/// repeats another element.
inline void move_one(TensorMap& inputs, const Operator& op, std::mt19937_64& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  std::vector<ArgumentSpec> specs = op.inputs;
  for (const ArgumentSpec& cotangent : op.cotangents()) specs.push_back(cotangent);
  const ArgumentSpec& spec = specs[static_cast<size_t>(below(static_cast<int64_t>(specs.size())))];
  const auto found = inputs.find(std::string(spec.name));
  if (found == inputs.end() || found->second.size() == 0) return;
  Tensor& x = found->second;
  const int64_t at = below(x.size()), other = below(x.size());
  const double old = x.value(at);
  const double moved[] = {old * 2,         old / 2,        -old, old * (1 + std::ldexp(1.0, -23)),
                          -x.value(other), x.value(other), 0,    old + 1};
  double value = moved[below(std::size(moved))];
  const bool gate = spec.role == Role::log_decay && spec.name[0] != 'd';
  if (gate) value = std::max(-std::fabs(value), -20.0);
  if (spec.role == Role::positive || spec.not_negative) value = std::fabs(value);
  if (spec.role == Role::rate) value = std::fmin(std::fabs(value), 2);
  if (std::fabs(value) < 64) x.set(at, value);
}

/// Climbs from drawn inputs to such as make error / bound large: each output's largest on the way.
template <typename Op>
std::vector<Fp32Check> climbed_law(const std::string& decay, const LawShape& shape, uint64_t seed,
                                   int64_t steps) {
  LawProblem<Op> p(decay, shape, seed, Dtype::fp32);
  declare_transcription(p.drawn.problem, 1);
  const Operator& op = find_operator(Op::name);
  std::mt19937_64 random(seed);
  std::vector<Fp32Check> worst = judged_transcription<Op>(p), now = worst;
  // One output after the other is climbed for.
  for (int64_t step = 0; step < steps; ++step) {
    const size_t target = static_cast<size_t>(step * static_cast<int64_t>(worst.size()) / steps);
    const TensorMap before = p.drawn.inputs;
    move_one(p.drawn.inputs, op, random);
    const std::vector<Fp32Check> moved = judged_transcription<Op>(p);
    for (size_t i = 0; i < worst.size(); ++i) {
      worst[i].judged += moved[i].judged, worst[i].outside += moved[i].outside;
      worst[i].ratio = std::fmax(worst[i].ratio, moved[i].ratio);
    }
    if (moved[target].ratio >= now[target].ratio)
      now = moved;
    else
      p.drawn.inputs = before;
  }
  return worst;
}

template <typename Op>
OperatorLaws laws_of() {
  return {std::string(Op::name), &adjoint_law<Op>, &resumed_law<Op>, &fp32_law<Op>, &climbed_law<Op>};
}

}  // namespace assay
