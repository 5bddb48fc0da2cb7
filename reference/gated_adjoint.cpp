#include "reference/gated_adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "reference/adjoint_block.h"
#include "reference/gated_forward.h"
#include "reference/parallel.h"

namespace assay {
namespace {

/// The slice's part of one output, as a run of elements.
struct Run {
  Gradient gradient;
  ReferenceOutput* out;
  int64_t first, count;
  int64_t t;  ///< token; 0 for a state
  std::vector<Ball<double>> SliceGradients::*literal;
  int64_t from;  ///< the run's first element there
};

template <typename Visit>
void for_each_run(const AdjointProblem& f, const Slice& s, const Visit& visit) {
  const int64_t K = f.K(), V = f.V(), gates = f.x.gate_columns();
  for (int64_t t = 0; t < s.tokens; ++t) {
    const int64_t row = (s.first_row + t) * f.H() + s.h;
    visit(Run{Gradient::q, f.dq, row * K, K, t, &SliceGradients::q, t * K});
    visit(Run{Gradient::k, f.dk, row * K, K, t, &SliceGradients::k, t * K});
    if (f.dg) visit(Run{Gradient::g, f.dg, row * gates, gates, t, &SliceGradients::g, t * gates});
    visit(Run{Gradient::v, f.dv, row * V, V, t, &SliceGradients::v, t * V});
  }
  if (f.du) visit(Run{Gradient::bonus, f.du, (s.n * f.H() + s.h) * K, K, 0, &SliceGradients::bonus, 0});
  if (f.dS0) visit(Run{Gradient::initial_state, f.dS0, f.state_row(s, 0), K * V, 0, &SliceGradients::S0, 0});
}

SliceInputs slice_inputs(const AdjointProblem& f, const Slice& s) {
  SliceInputs x{s.tokens, f.K(), f.V(), {}, {}, {}, {}, {}, {}, {}, f.problem.scale};
  const auto rows = [&](const Tensor& tensor, int64_t width, std::vector<double>& out) {
    out.resize(static_cast<size_t>(s.tokens * width));
    decode_rows(tensor, s.first_row, s.tokens, f.H(), s.h, width, out.data());
  };
  rows(f.x.q, f.K(), x.q), rows(f.x.k, f.K(), x.k), rows(f.x.v, f.V(), x.v), rows(f.d_o, f.V(), x.d_o);
  if (f.x.gated()) x.g.resize(x.q.size()), f.x.read_decays(s, 0, s.tokens, x.g.data(), nullptr);
  x.bonus = f.x.read_bonus(s.h);
  x.settings.slice = s, x.settings.heads = f.H(), x.settings.scale = f.problem.scale;
  x.settings.parameters = f.row.parameters, x.settings.problem = &f.problem;
  x.S0.assign(static_cast<size_t>(f.K() * f.V()), 0), x.dS = x.S0;
  if (f.x.S0) decode_run(*f.x.S0, f.state_row(s, 0), f.K() * f.V(), x.S0.data());
  if (f.dS) decode_run(*f.dS, f.state_row(s, 0), f.K() * f.V(), x.dS.data());
  return x;
}

/// Product of one plus the largest magnitude of every input, times the number of terms: times kOwnUnderflow
/// it bounds what underflow can do to any gradient, as every lost amount is multiplied by at most one factor
/// of each kind.
double own_underflow(const SliceInputs& x) {
  double product = kOwnUnderflow * 64 * (1 + std::fabs(x.scale));
  for (const auto* values : {&x.q, &x.k, &x.v, &x.d_o, &x.S0, &x.dS, &x.bonus}) {
    double largest = 0;
    for (double y : *values) largest = std::fmax(largest, std::fabs(y));
    product *= 1 + largest;
  }
  const double terms = static_cast<double>(x.tokens + 1);
  return product * terms * terms * static_cast<double>(x.K) * static_cast<double>(x.V);
}

bool finite_inputs(const SliceInputs& x) {
  for (const auto* values : {&x.q, &x.k, &x.g, &x.v, &x.S0, &x.d_o, &x.dS, &x.bonus})
    if (!std::all_of(values->begin(), values->end(), [](double y) { return std::isfinite(y); })) return false;
  return std::all_of(x.g.begin(), x.g.end(), [](double y) { return y <= 0; });
}

/// A radius that a verdict, or where no arithmetic was declared a comparison of gradients, may rest on.
bool narrow(const AdjointProblem& f, const ReferenceOutput& out, size_t i, double lost) {
  if (f.model.exact_claimed()) return out.rad[i] <= kAdjointShare * out.companion[i] + 2 * lost;
  return out.rad[i] <= kEnclosureShare * out.bound[i];
}

/// Gradients that are summed over the tokens and sequences in the end, and stored then.
bool reduced(const AdjointProblem& f, Gradient gradient) {
  return gradient == Gradient::bonus || (gradient == Gradient::g && f.x.head_gate);
}

Dtype gate_dtype(const AdjointProblem& f) {
  return (f.x.gate ? f.x.gate : f.x.head_gate)->dtype;
}

/// Turns sums and excesses into companion, radius and bound: every element of a run.
void finish_run(const AdjointProblem& f, const Slice& s, const SliceInputs& x, const AdjointMagnitudes& most,
                const Run& run, double nats, double factor, double lost) {
  const double roundings = 32 * static_cast<double>(s.tokens) + 2 * static_cast<double>(f.K() + f.V()) + 64;
  const double raise = 1 + 2 * gamma(roundings, kDoubleRoundoff),
               u = reduced(f, run.gradient) ? 0 : f.model.roundoff(run.gradient);
  const bool state = run.gradient == Gradient::initial_state, untouched = state && s.tokens == 0,
             overflows = !untouched && most.overflows(run.gradient), exact_claimed = f.model.exact_claimed();
  const Dtype dtype = state ? Dtype::fp32 : run.gradient == Gradient::g ? gate_dtype(f) : f.x.q.dtype;
  const double half_subnormal = u == 0 ? 0 : min_subnormal(dtype) / 2;
  const double underflow =
      std::fmax(f.model.arithmetic().state.underflow, f.model.arithmetic().adjoint.underflow) +
      (exact_claimed ? 0 : kOwnUnderflow);
  const double flushed = untouched || underflow == 0 ? 0 : underflow * most.spread(run.gradient, run.t);
  ReferenceOutput& out = *run.out;
  for (int64_t j = 0; j < run.count; ++j) {
    const auto i = static_cast<size_t>(run.first + j);
    const double g = run.gradient == Gradient::g ? x.g[static_cast<size_t>(run.t * f.K() + j)] : 0;
    const double error = f.model.relative_part(run.gradient, out.companion[i], out.bound[i], g, nats) * raise;
    const double own_of_states = f.model.own_of_excess() * out.bound[i] * raise;
    out.companion[i] *= raise;
    const bool exact = untouched || f.grid.exact(static_cast<int>(run.gradient), most.largest_state(),
                                                 most.largest_adjoint(), out.companion[i]);
    out.rad[i] = !std::isfinite(out.mid[i]) ? HUGE_VAL
                 : exact                    ? 0
                                            : factor * out.companion[i] + own_of_states + lost;
    double bound = error + flushed;
    bound += u * (std::fabs(out.mid[i]) + out.rad[i] + bound) + half_subnormal;
    if (bound != 0) bound *= 1 + 0x1p-50;
    out.bound[i] = overflows ? HUGE_VAL : bound;
    out.underflow[i] = flushed + half_subnormal;
  }
}

/// A gate's gradient that is made of sums to the chunk's end has the errors of all their terms, those of
/// later pairs of tokens too, which cancel in it. Where that sum is the chunk's less a prefix, the terms of
/// earlier tokens cancel to the bit, and what the two sums were rounded by does not (bound_adjoint.h).
void add_gate_sums(const AdjointProblem& f, const Slice& s, const std::vector<AdjointSums>& total) {
  const SliceInputs x = slice_inputs(f, s);
  const AdjointArithmetic& a = f.model.arithmetic();
  const int64_t K = f.K(), chunk = a.state.chunk > 0 ? a.state.chunk : std::max<int64_t>(s.tokens, 1);
  const bool per_channel = f.dg->mid.size() == f.dq->mid.size();
  const auto term = [&](size_t i) {
    return std::fabs(x.q[i]) * (total[i].dq_abs + total[i].dq_excess) +
           std::fabs(x.k[i]) * (total[i].dk_abs + total[i].dk_excess);
  };
  for (int64_t first = 0; first < s.tokens; first += chunk) {
    const int64_t end = std::min(s.tokens, first + chunk);
    std::vector<double> whole(static_cast<size_t>(K)), later(static_cast<size_t>(K));
    for (int64_t i = first * K; a.gate_prefix > 0 && i < end * K; ++i)
      whole[static_cast<size_t>(i % K)] += term(static_cast<size_t>(i));
    for (int64_t i = end * K; i-- > first * K;) {
      const auto at = static_cast<size_t>(i), c = static_cast<size_t>(i % K),
                 out = static_cast<size_t>(((s.first_row + i / K) * f.H() + s.h) * K + i % K);
      later[c] += term(at);
      const double sums = a.gate_sums * (later[c] + total[at].dg_abs),
                   prefix = a.gate_prefix * ((1 + a.gate_sums) * whole[c] + total[at].dg_abs);
      f.dg->bound[per_channel ? out : out / static_cast<size_t>(K)] += (sums + prefix) * (1 + 0x1p-20);
    }
  }
}

/// Radii and bounds of a slice whose sums are complete; then the ladder.
void finish_slice(const AdjointProblem& f, const Slice& s) {
  const SliceInputs x = slice_inputs(f, s);
  const bool usable = finite_inputs(x);
  const AdjointMagnitudes most(x, f.model);
  const double sums = static_cast<double>(f.K() + f.V()), lost = own_underflow(x);
  const std::vector<double> nats = f.model.nats_of(x);
  bool wide = false;
  for_each_run(f, s, [&](const Run& run) {
    const double factor = f.model.own_error(run.gradient, s.tokens, sums);
    finish_run(f, s, x, most, run, nats.empty() ? 0 : nats[static_cast<size_t>(run.t)], factor, lost);
    for (auto i = static_cast<size_t>(run.first); i < static_cast<size_t>(run.first + run.count); ++i) {
      if (!usable) run.out->rad[i] = HUGE_VAL;
      wide = wide || (!narrow(f, *run.out, i, lost) && std::isfinite(run.out->bound[i]));
    }
  });
  SliceGradients y;
  for (int level = 0; wide && usable && f.row.literal_slice(x, level, y); ++level) {
    wide = false;
    for_each_run(f, s, [&](const Run& run) {
      for (int64_t j = 0; j < run.count; ++j) {
        const auto i = static_cast<size_t>(run.first + j);
        ReferenceOutput& out = *run.out;
        const Ball<double>& ball = (y.*run.literal)[static_cast<size_t>(run.from + j)];
        if (ball.rad < out.rad[i]) out.mid[i] = ball.mid, out.rad[i] = ball.rad;
        wide = wide || (!narrow(f, out, i, lost) && std::isfinite(out.bound[i]));
      }
    });
    const std::lock_guard lock(f.mutex);
    for (ReferenceOutput* out : {f.dq, f.dk, f.dv, f.dg, f.du, f.dS0})
      if (out) out->rung = std::max(out->rung, std::min(level + 1, 2));
  }
  const std::lock_guard lock(f.mutex);
  for_each_run(f, s, [&](const Run& run) {
    for (int64_t i = run.first; i < run.first + run.count; ++i)
      run.out->wide += !narrow(f, *run.out, static_cast<size_t>(i), lost) ||
                       std::isinf(run.out->bound[static_cast<size_t>(i)]);
  });
}

/// One term of a sum that is being made: value, companion and excess.
void add_term(ReferenceOutput& out, size_t at, double value, double magnitude, double relative) {
  out.mid[at] += value, out.companion[at] += magnitude, out.bound[at] += relative * magnitude;
}

/// The terms with u (bound_adjoint.h).
void add_bonus(const AdjointProblem& f, const Slice& s) {
  const auto K = static_cast<size_t>(f.K()), V = static_cast<size_t>(f.V());
  const double relative = f.model.arithmetic().bonus, scale = f.problem.scale;
  const std::vector<double> u = f.x.read_bonus(s.h);
  std::vector<double> q(K), k(K), v(V), d_o(V);
  const auto shared = static_cast<size_t>((s.n * f.H() + s.h) * f.K());
  for (int64_t t = 0; t < s.tokens; ++t) {
    const int64_t row = s.first_row + t;
    decode_rows(f.x.q, row, 1, f.H(), s.h, f.K(), q.data());
    decode_rows(f.x.k, row, 1, f.H(), s.h, f.K(), k.data());
    decode_rows(f.x.v, row, 1, f.H(), s.h, f.V(), v.data());
    decode_rows(f.d_o, row, 1, f.H(), s.h, f.V(), d_o.data());
    double c = 0, c_abs = 0, b = 0, b_abs = 0;
    for (size_t j = 0; j < V; ++j) c += v[j] * d_o[j] * scale, c_abs += std::fabs(v[j] * d_o[j] * scale);
    for (size_t i = 0; i < K; ++i) b += q[i] * u[i] * k[i], b_abs += std::fabs(q[i] * u[i] * k[i]);
    const auto key = static_cast<size_t>((row * f.H() + s.h) * f.K()),
               value = static_cast<size_t>(f.output_row(s, t));
    for (size_t i = 0; i < K; ++i) {
      add_term(*f.dq, key + i, c * u[i] * k[i], c_abs * std::fabs(u[i] * k[i]), relative);
      add_term(*f.dk, key + i, c * u[i] * q[i], c_abs * std::fabs(u[i] * q[i]), relative);
      add_term(*f.du, shared + i, c * q[i] * k[i], c_abs * std::fabs(q[i] * k[i]), relative);
    }
    for (size_t j = 0; j < V; ++j)
      add_term(*f.dv, value + j, b * d_o[j] * scale, b_abs * std::fabs(d_o[j] * scale), relative);
  }
}

/// Blocks of columns go over `threads`; their shares are added in the order of the columns, so the bits do
/// not depend on it.
void run_slice(const AdjointProblem& f, const Slice& s, int threads) {
  constexpr int W = kAdjointColumns;
  const int64_t blocks = (f.V() + W - 1) / W;
  const size_t size = static_cast<size_t>(s.tokens * f.K());
  const int64_t gates = f.x.gate_columns();
  std::vector<AdjointSums> total(size);
  if (threads == 1) {
    for (int64_t b = 0; b < blocks; ++b) AdjointBlock(f, s, b * W).run(total);
  } else {
    std::vector<std::vector<AdjointSums>> shares(static_cast<size_t>(blocks));
    parallel_for(blocks, threads, [&](int64_t b) {
      shares[static_cast<size_t>(b)].resize(size);
      AdjointBlock(f, s, b * W).run(shares[static_cast<size_t>(b)]);
    });
    for (const auto& share : shares)
      for (size_t i = 0; i < size; ++i) {
        AdjointSums& sum = total[i];
        const AdjointSums& part = share[i];
        sum.dq += part.dq, sum.dq_abs += part.dq_abs, sum.dq_excess += part.dq_excess;
        sum.dk += part.dk, sum.dk_abs += part.dk_abs, sum.dk_excess += part.dk_excess;
        sum.dg += part.dg, sum.dg_abs += part.dg_abs, sum.dg_excess += part.dg_excess;
      }
  }
  for (int64_t t = 0; t < s.tokens; ++t)
    for (int64_t c = 0; c < f.K(); ++c) {
      const size_t i = static_cast<size_t>(t * f.K() + c);
      const size_t out = static_cast<size_t>(((s.first_row + t) * f.H() + s.h) * f.K() + c);
      const AdjointSums& sum = total[i];
      f.dq->mid[out] = sum.dq, f.dq->companion[out] = sum.dq_abs, f.dq->bound[out] = sum.dq_excess;
      f.dk->mid[out] = sum.dk, f.dk->companion[out] = sum.dk_abs, f.dk->bound[out] = sum.dk_excess;
      if (!f.dg) continue;
      const size_t gate = gates == f.K() ? out : out / static_cast<size_t>(f.K());
      f.dg->mid[gate] += sum.dg, f.dg->companion[gate] += sum.dg_abs, f.dg->bound[gate] += sum.dg_excess;
    }
  if (f.x.exclusive()) add_bonus(f, s);
  const AdjointArithmetic& a = f.model.arithmetic();
  if (f.dg && (a.gate_sums > 0 || a.gate_prefix > 0)) add_gate_sums(f, s, total);
  finish_slice(f, s);
}

/// The gradient of an input that all rows of `parts` share: their sum, which a kernel makes with the relative
/// error `total` and then stores.
ReferenceOutput sum_of_rows(const AdjointProblem& f, const ReferenceOutput& parts, std::vector<Axis> axes,
                            Gradient gradient, Dtype dtype) {
  ReferenceOutput out = output_of_zeros(parts.name, std::move(axes));
  out.rung = parts.rung;
  const size_t width = out.mid.size(), rows = width ? parts.mid.size() / width : 0;
  const double total = f.model.arithmetic().total, u = f.model.roundoff(gradient),
               half_subnormal = u == 0 ? 0 : min_subnormal(dtype) / 2,
               raise = 1 + 2 * gamma(static_cast<double>(rows) + 4, kDoubleRoundoff);
  for (size_t i = 0; i < width; ++i) {
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = r * width + i;
      const DoubleDouble sum = two_sum(out.mid[i], parts.mid[at]);
      out.mid[i] = sum.hi, out.rad[i] += std::fabs(sum.lo) + parts.rad[at];
      out.companion[i] += parts.companion[at], out.bound[i] += parts.bound[at];
      out.underflow[i] += parts.underflow[at];
    }
    double bound = out.bound[i] + total * (out.companion[i] + out.bound[i]);
    bound += u * (std::fabs(out.mid[i]) + out.rad[i] + bound) + half_subnormal;
    out.rad[i] *= raise, out.companion[i] *= raise;
    out.bound[i] = bound == 0 ? 0 : bound * raise;
    // Each row's own sums are below 2^127 or its bound is infinite; what adds them up may pass it.
    if (!(out.companion[i] + out.bound[i] < kOverflow)) out.bound[i] = HUGE_VAL;
    out.underflow[i] = out.underflow[i] * raise + half_subnormal;
    const double allowed =
        f.model.exact_claimed() ? kAdjointShare * out.companion[i] : kEnclosureShare * out.bound[i];
    out.wide += !(out.rad[i] <= allowed) || std::isinf(out.bound[i]);
  }
  return out;
}

std::string why_wide(const ReferenceOutput& out) {
  const auto overflow = std::count(out.bound.begin(), out.bound.end(), HUGE_VAL);
  const std::string overflowing =
      overflow ? fmt::format(" {} where the kernel's intermediates may overflow;", overflow) : "";
  const int64_t others = out.wide - overflow;
  const std::string too_wide =
      others ? fmt::format(" {} whose radius is too wide after rung {};", others, out.rung) : "";
  std::string text = fmt::format("{}: {} of {} elements undecided:{}{}", out.name, out.wide, out.mid.size(),
                                 overflowing, too_wide);
  text.pop_back();
  return text;
}

}  // namespace

ReferenceResult gated_adjoint(const Problem& p, const GatedAdjointRow& row) {
  const auto start = std::chrono::steady_clock::now();
  const Sizes& s = p.sizes;
  const std::vector<Slice> slices = slices_of(p);
  const int64_t N = p.cu_seqlens.empty() ? s.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
  const GatedTensors x(p, row.form);
  const std::vector<Axis> rows = {{"B", s.B}, {"T", s.T}, {"H", s.H}};
  const auto per_token = [&](const char* letter, int64_t size) {
    std::vector<Axis> axes = rows;
    axes.push_back({letter, size});
    return axes;
  };
  const auto gradient_of = [](std::string_view name, std::vector<Axis> axes) {
    return output_of_zeros("d" + std::string(name), std::move(axes));
  };
  ReferenceOutput dq = gradient_of(row.form.q, per_token("K", s.K)), dk = gradient_of(row.form.k, dq.axes),
                  dv = gradient_of(row.form.v, per_token("V", s.V)), dg, du, dS0;
  if (x.gate) dg = gradient_of(row.form.gate, row.form.per_channel ? dq.axes : rows);
  if (x.head_gate) dg = gradient_of(row.form.head_gate, rows);
  if (x.bonus) du = gradient_of(row.form.bonus, {{"N", N}, {"H", s.H}, {"K", s.K}});
  if (x.S0) dS0 = gradient_of(row.form.state, {{"N", N}, {"H", s.H}, {"K", s.K}, {"V", s.V}});
  std::mutex mutex;
  AdjointProblem f{p,
                   row,
                   x,
                   require_input(p, "do", s.B * s.T * s.H * s.V),
                   find_input(p, "dfinal_state", N * s.H * s.K * s.V),
                   AdjointBoundModel(p.adjoint, x.decays()),
                   {},
                   &dq,
                   &dk,
                   &dv,
                   x.gate || x.head_gate ? &dg : nullptr,
                   x.S0 ? &dS0 : nullptr,
                   x.bonus ? &du : nullptr,
                   mutex};
  if (!x.decays()) f.grid = AdjointGrid(x.q, x.k, x.v, f.d_o, nullptr, x.S0, f.dS, x.bonus, p.scale);
  const bool many = static_cast<int64_t>(slices.size()) >= p.threads;
  parallel_for(static_cast<int64_t>(slices.size()), many ? p.threads : 1,
               [&](int64_t i) { run_slice(f, slices[static_cast<size_t>(i)], many ? 1 : p.threads); });
  if (x.head_gate) dg = sum_of_rows(f, dg, {{"H", s.H}}, Gradient::g, x.head_gate->dtype);
  if (x.bonus) du = sum_of_rows(f, du, {{"H", s.H}, {"K", s.K}}, Gradient::bonus, x.bonus->dtype);
  ReferenceResult result;
  for (const auto& [gradient, output] : {std::pair{Gradient::q, &dq},
                                         {Gradient::k, &dk},
                                         {Gradient::v, &dv},
                                         {Gradient::g, &dg},
                                         {Gradient::bonus, &du},
                                         {Gradient::initial_state, &dS0}}) {
    if (output->name.empty()) continue;
    output->roundoff = f.model.roundoff(gradient);
    if (output->wide) output->undecided = why_wide(*output);
    result.outputs.push_back(std::move(*output));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay
