#include "reference/gated_adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "reference/gated_kernels.h"
#include "reference/parallel.h"
#include "reference/slices.h"
#include "src/numerics/exponential.h"

namespace assay {
namespace {

constexpr int W = kAdjointColumns;
/// Underflow of the evaluator's own arithmetic: at most this times the product of all magnitudes (see
/// Adjoint::own_underflow).
constexpr double kOwnUnderflow = 0x1p-960;

struct Adjoint {
  const Problem& problem;
  const GatedAdjointRow& row;
  const Tensor &q, &k, &v, &d_o;
  const Tensor *g, *S0, *dS;
  ReferenceOutput *dq, *dk, *dv, *dg, *dS0;
  std::mutex& mutex;

  int64_t K() const { return problem.sizes.K; }
  int64_t V() const { return problem.sizes.V; }
  int64_t H() const { return problem.sizes.H; }
  int64_t state_row(const Slice& s, int64_t c) const { return ((s.n * H() + s.h) * K() + c) * V(); }
};

/// The columns v0 .. v0 + W of one slice, all its tokens.
class Block {
 public:
  Block(const Adjoint& f, const Slice& slice, int64_t v0)
      : f_(f),
        slice_(slice),
        v0_(v0),
        width_(std::min<int64_t>(W, f.V() - v0)),
        size_(adjoint_state_size(f.K())) {
    segment_ =
        std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(slice.tokens)))));
  }

  /// Adds this block's share to sums (tokens x K); writes its columns of dv, dS0 and their companions.
  void run(std::vector<AdjointSums>& sums) {
    const size_t size = static_cast<size_t>(size_);
    std::vector<double> state(size), G(size);
    if (f_.S0) load(*f_.S0, state);
    if (f_.dS) load(*f_.dS, G);
    std::vector<std::vector<double>> checkpoints;
    for (int64_t t = 0; t < slice_.tokens; t += segment_) {
      checkpoints.push_back(state);
      const int64_t tokens = read(t);
      gated_kernels().states({tokens, f_.K(), coefficients_.data(), v_.data(), state.data(), false});
    }
    std::vector<double> states(size * static_cast<size_t>(segment_ + 1));
    for (int64_t i = static_cast<int64_t>(checkpoints.size()) - 1; i >= 0; --i) {
      const int64_t first = i * segment_, tokens = read(first);
      std::copy(checkpoints.back().begin(), checkpoints.back().end(), states.begin());
      checkpoints.pop_back();
      gated_kernels().states({tokens, f_.K(), coefficients_.data(), v_.data(), states.data(), true});
      dv_.resize(v_.size()), dv_abs_.resize(v_.size());
      gated_kernels().reverse({tokens, f_.K(), coefficients_.data(), v_.data(), d_o_.data(), states.data(),
                               G.data(), sums.data() + first * f_.K(), dv_.data(), dv_abs_.data()});
      store_dv(first, tokens);
    }
    if (f_.dS0) store_dS0(G);
  }

 private:
  void load(const Tensor& tensor, std::vector<double>& state) const {
    double row[W];
    for (int64_t c = 0; c < f_.K(); ++c) {
      decode_run(tensor, f_.state_row(slice_, c) + v0_, width_, row);
      for (int64_t j = 0; j < width_; ++j) {
        state[static_cast<size_t>(c * 2 * W + j)] = row[j];
        state[static_cast<size_t>(c * 2 * W + W + j)] = std::fabs(row[j]);
      }
    }
  }

  int64_t output_row(int64_t t) const { return ((slice_.first_row + t) * f_.H() + slice_.h) * f_.V() + v0_; }

  /// Coefficients and columns of the segment at `first`; returns its length.
  int64_t read(int64_t first) {
    const int64_t tokens = std::min(segment_, slice_.tokens - first), row = slice_.first_row + first;
    const size_t n = static_cast<size_t>(tokens * f_.K());
    q_.resize(n), k_.resize(n), g_.assign(n, 0), coefficients_.resize(n);
    decode_rows(f_.q, row, tokens, f_.H(), slice_.h, f_.K(), q_.data());
    decode_rows(f_.k, row, tokens, f_.H(), slice_.h, f_.K(), k_.data());
    if (f_.g) decode_rows(*f_.g, row, tokens, f_.H(), slice_.h, f_.K(), g_.data());
    for (size_t i = 0; i < n; ++i)
      coefficients_[i] = {exponential(g_[i]), k_[i], std::fabs(k_[i]), q_[i], std::fabs(q_[i])};
    v_.assign(static_cast<size_t>(tokens * W), 0), d_o_ = v_;
    for (int64_t t = 0; t < tokens; ++t) {
      decode_run(f_.v, output_row(first + t), width_, v_.data() + t * W);
      decode_run(f_.d_o, output_row(first + t), width_, d_o_.data() + t * W);
      for (int64_t j = 0; j < width_; ++j) d_o_[static_cast<size_t>(t * W + j)] *= f_.problem.scale;
    }
    return tokens;
  }

  void store_dv(int64_t first, int64_t tokens) {
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t j = 0; j < width_; ++j) {
        const size_t out = static_cast<size_t>(output_row(first + t) + j), i = static_cast<size_t>(t * W + j);
        f_.dv->mid[out] = dv_[i], f_.dv->companion[out] = dv_abs_[i];
      }
  }
  void store_dS0(const std::vector<double>& G) {
    for (int64_t c = 0; c < f_.K(); ++c)
      for (int64_t j = 0; j < width_; ++j) {
        const size_t out = static_cast<size_t>(f_.state_row(slice_, c) + v0_ + j),
                     i = static_cast<size_t>(c * 2 * W + j);
        f_.dS0->mid[out] = G[i], f_.dS0->companion[out] = G[i + W];
      }
  }

  const Adjoint& f_;
  const Slice slice_;
  const int64_t v0_, width_, size_;
  int64_t segment_;
  std::vector<double> q_, k_, g_, v_, d_o_, dv_, dv_abs_;
  std::vector<AdjointCoefficient> coefficients_;
};

/// The slice's part of the outputs, as (output, first element, count) runs.
template <typename Visit>
void for_each_run(const Adjoint& f, const Slice& s, const Visit& visit) {
  for (int64_t t = 0; t < s.tokens; ++t) {
    const int64_t row = (s.first_row + t) * f.H() + s.h;
    visit(f.dq, row * f.K(), f.K(), &SliceGradients::q, t * f.K());
    visit(f.dk, row * f.K(), f.K(), &SliceGradients::k, t * f.K());
    if (f.dg) visit(f.dg, row * f.K(), f.K(), &SliceGradients::g, t * f.K());
    visit(f.dv, row * f.V(), f.V(), &SliceGradients::v, t * f.V());
  }
  if (f.dS0) visit(f.dS0, f.state_row(s, 0), f.K() * f.V(), &SliceGradients::S0, int64_t{0});
}

SliceInputs slice_inputs(const Adjoint& f, const Slice& s) {
  SliceInputs x{s.tokens, f.K(), f.V(), {}, {}, {}, {}, {}, {}, {}, f.problem.scale};
  const auto rows = [&](const Tensor& tensor, int64_t width, std::vector<double>& out) {
    out.resize(static_cast<size_t>(s.tokens * width));
    decode_rows(tensor, s.first_row, s.tokens, f.H(), s.h, width, out.data());
  };
  rows(f.q, f.K(), x.q), rows(f.k, f.K(), x.k), rows(f.v, f.V(), x.v), rows(f.d_o, f.V(), x.d_o);
  if (f.g) rows(*f.g, f.K(), x.g);
  x.S0.assign(static_cast<size_t>(f.K() * f.V()), 0), x.dS = x.S0;
  if (f.S0) decode_run(*f.S0, f.state_row(s, 0), f.K() * f.V(), x.S0.data());
  if (f.dS) decode_run(*f.dS, f.state_row(s, 0), f.K() * f.V(), x.dS.data());
  return x;
}

/// Product of one plus the largest magnitude of every input, times the number of terms: times kOwnUnderflow
/// it bounds what underflow can do to any gradient, as every lost amount is multiplied by at most one factor
/// of each kind.
double own_underflow(const SliceInputs& x) {
  double product = kOwnUnderflow * 64 * (1 + std::fabs(x.scale));
  for (const auto* values : {&x.q, &x.k, &x.v, &x.d_o, &x.S0, &x.dS}) {
    double largest = 0;
    for (double y : *values) largest = std::fmax(largest, std::fabs(y));
    product *= 1 + largest;
  }
  const double terms = static_cast<double>(x.tokens + 1);
  return product * terms * terms * static_cast<double>(x.K) * static_cast<double>(x.V);
}

bool finite(const SliceInputs& x) {
  for (const auto* values : {&x.q, &x.k, &x.g, &x.v, &x.S0, &x.d_o, &x.dS})
    if (!std::all_of(values->begin(), values->end(), [](double y) { return std::isfinite(y); })) return false;
  return std::all_of(x.g.begin(), x.g.end(), [](double y) { return y <= 0; });
}

/// Radii of a slice whose mid and companion are complete; then the ladder.
void finish_slice(const Adjoint& f, const Slice& s) {
  const SliceInputs x = slice_inputs(f, s);
  const bool usable = finite(x);
  const double n = 6 * static_cast<double>(s.tokens) + static_cast<double>(f.K() + f.V()) + 32;
  const double factor = gamma(n, kDoubleRoundoff), raise = 1 + 2 * gamma(n, kDoubleRoundoff),
               lost = own_underflow(x);
  bool wide = false;
  for_each_run(f, s, [&](ReferenceOutput* out, int64_t first, int64_t count, auto, int64_t) {
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(first + count); ++i) {
      out->companion[i] *= raise;
      out->rad[i] =
          usable && std::isfinite(out->mid[i]) ? factor * raise * out->companion[i] + lost : HUGE_VAL;
      wide = wide || !(out->rad[i] <= kAdjointShare * out->companion[i] + 2 * lost);
    }
  });
  SliceGradients y;
  for (int level = 0; wide && usable && f.row.literal_slice(x, level, y); ++level) {
    wide = false;
    for_each_run(f, s, [&](ReferenceOutput* out, int64_t first, int64_t count, auto member, int64_t from) {
      for (int64_t j = 0; j < count; ++j) {
        const size_t i = static_cast<size_t>(first + j);
        const Ball<double>& ball = (y.*member)[static_cast<size_t>(from + j)];
        if (ball.rad < out->rad[i]) out->mid[i] = ball.mid, out->rad[i] = ball.rad;
        wide = wide || !(out->rad[i] <= kAdjointShare * out->companion[i] + 2 * lost);
      }
    });
    const std::lock_guard lock(f.mutex);
    for (ReferenceOutput* out : {f.dq, f.dk, f.dv}) out->rung = std::max(out->rung, std::min(level + 1, 2));
    for (ReferenceOutput* out : {f.dg, f.dS0})
      if (out) out->rung = std::max(out->rung, std::min(level + 1, 2));
  }
  const std::lock_guard lock(f.mutex);
  for_each_run(f, s, [&](ReferenceOutput* out, int64_t first, int64_t count, auto, int64_t) {
    for (int64_t i = first; i < first + count; ++i)
      out->wide += !(out->rad[static_cast<size_t>(i)] <=
                     kAdjointShare * out->companion[static_cast<size_t>(i)] + 2 * lost);
  });
}

/// Blocks of columns go over `threads`; their shares are added in the order of the columns, so the bits do
/// not depend on it.
void run_slice(const Adjoint& f, const Slice& s, int threads) {
  const int64_t blocks = (f.V() + W - 1) / W;
  const size_t size = static_cast<size_t>(s.tokens * f.K());
  std::vector<AdjointSums> total(size);
  if (threads == 1) {
    for (int64_t b = 0; b < blocks; ++b) Block(f, s, b * W).run(total);
  } else {
    std::vector<std::vector<AdjointSums>> shares(static_cast<size_t>(blocks));
    parallel_for(blocks, threads, [&](int64_t b) {
      shares[static_cast<size_t>(b)].resize(size);
      Block(f, s, b * W).run(shares[static_cast<size_t>(b)]);
    });
    for (const auto& share : shares)
      for (size_t i = 0; i < size; ++i) {
        total[i].dq += share[i].dq, total[i].dq_abs += share[i].dq_abs, total[i].dk += share[i].dk;
        total[i].dk_abs += share[i].dk_abs, total[i].dg += share[i].dg, total[i].dg_abs += share[i].dg_abs;
      }
  }
  for (int64_t t = 0; t < s.tokens; ++t)
    for (int64_t c = 0; c < f.K(); ++c) {
      const size_t i = static_cast<size_t>(t * f.K() + c);
      const size_t out = static_cast<size_t>(((s.first_row + t) * f.H() + s.h) * f.K() + c);
      f.dq->mid[out] = total[i].dq, f.dq->companion[out] = total[i].dq_abs;
      f.dk->mid[out] = total[i].dk, f.dk->companion[out] = total[i].dk_abs;
      if (f.dg) f.dg->mid[out] = total[i].dg, f.dg->companion[out] = total[i].dg_abs;
    }
  finish_slice(f, s);
}

ReferenceOutput make_gradient(std::string name, std::vector<Axis> axes) {
  ReferenceOutput out;
  out.name = std::move(name);
  size_t size = 1;
  for (const Axis& axis : axes) size *= static_cast<size_t>(axis.size);
  out.axes = std::move(axes);
  for (auto* field : {&out.mid, &out.rad, &out.companion}) field->assign(size, 0);
  return out;
}

}  // namespace

ReferenceResult gated_adjoint(const Problem& p, const GatedAdjointRow& row) {
  const auto start = std::chrono::steady_clock::now();
  const Sizes& s = p.sizes;
  const std::vector<Slice> slices = slices_of(p);
  const int64_t N = p.cu_seqlens.empty() ? s.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
  const int64_t qk = s.B * s.T * s.H * s.K, vo = s.B * s.T * s.H * s.V, state = N * s.H * s.K * s.V;
  const Tensor *g = find_input(p, "g", qk), *S0 = find_input(p, "initial_state", state);
  const std::vector<Axis> token_key = {{"B", s.B}, {"T", s.T}, {"H", s.H}, {"K", s.K}};
  ReferenceResult result;
  result.outputs.push_back(make_gradient("dq", token_key));
  result.outputs.push_back(make_gradient("dk", token_key));
  result.outputs.push_back(make_gradient("dv", {{"B", s.B}, {"T", s.T}, {"H", s.H}, {"V", s.V}}));
  if (g) result.outputs.push_back(make_gradient("dg", token_key));
  if (S0)
    result.outputs.push_back(make_gradient("dinitial_state", {{"N", N}, {"H", s.H}, {"K", s.K}, {"V", s.V}}));
  std::mutex mutex;
  auto& out = result.outputs;
  const Adjoint f{p,
                  row,
                  require_input(p, "q", qk),
                  require_input(p, "k", qk),
                  require_input(p, "v", vo),
                  require_input(p, "do", vo),
                  g,
                  S0,
                  find_input(p, "dfinal_state", state),
                  &out[0],
                  &out[1],
                  &out[2],
                  g ? &out[3] : nullptr,
                  S0 ? &out.back() : nullptr,
                  mutex};
  const bool many = static_cast<int64_t>(slices.size()) >= p.threads;
  parallel_for(static_cast<int64_t>(slices.size()), many ? p.threads : 1,
               [&](int64_t i) { run_slice(f, slices[static_cast<size_t>(i)], many ? 1 : p.threads); });
  for (ReferenceOutput& o : out)
    if (o.wide)
      o.undecided = fmt::format("{}: {} of {} elements have no enclosure within 2^-34 of their companion",
                                o.name, o.wide, o.mid.size());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace assay
