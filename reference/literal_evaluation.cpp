#include "reference/literal_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>

#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// One direction of an evaluation.
struct Direction {
  std::vector<ArgumentSpec> results;
  std::vector<SliceLayout> layouts;  ///< of the results
  std::vector<bool> wanted;          ///< gradients of absent inputs are not
  std::function<bool(const SliceProblem&, int, SliceBalls&)> balls;
  std::function<SliceBounds(const SliceProblem&)> bounds;
  bool cotangents = false;
};

struct SliceResult {
  SliceBalls balls;
  SliceBounds bounds;
  int rung = 0;
};

bool finite(const std::vector<SliceMatrix>& matrices) {
  return std::all_of(matrices.begin(), matrices.end(), [](const SliceMatrix& m) {
    return std::all_of(m.values.begin(), m.values.end(), [](double x) { return std::isfinite(x); });
  });
}

/// No verdict may rest on a radius above a share of the bound. Where nothing is declared to round the bound
/// is zero and only an exact value will do.
bool too_wide(double rad, double bound) {
  const double allowed = kEnclosureShare * bound;
  return std::isfinite(allowed) && !(rad <= allowed);
}

int64_t wide_elements(const SliceResult& r, const std::vector<bool>& wanted) {
  int64_t wide = 0;
  for (size_t a = 0; a < r.balls.size(); ++a)
    for (size_t i = 0; wanted[a] && i < r.balls[a].size(); ++i)
      wide += too_wide(r.balls[a][i].rad, r.bounds[a][i].bound);
  return wide;
}

void keep_narrower(const SliceBalls& from, SliceBalls& to) {
  for (size_t a = 0; a < to.size(); ++a)
    for (size_t i = 0; i < to[a].size(); ++i)
      if (from[a][i].rad < to[a][i].rad || std::isnan(to[a][i].mid)) to[a][i] = from[a][i];
}

/// Bounds and the first enclosure at once, where there are two threads.
SliceResult evaluate_slice(const SliceProblem& x, const Direction& d, int threads) {
  SliceResult r;
  SliceBalls balls;
  bool enclosed = false;
  parallel_for(2, threads, [&](int64_t i) {
    if (i == 0)
      r.bounds = d.bounds(x);
    else
      enclosed = d.balls(x, 0, balls);
  });
  const bool usable = finite(x.inputs) && finite(x.cotangents);
  for (int level = 0; enclosed; ++level, balls = {}, enclosed = d.balls(x, level, balls)) {
    if (level == 0)
      r.balls = balls;
    else
      keep_narrower(balls, r.balls);
    r.rung = std::min(level, 2);
    if (!usable || wide_elements(r, d.wanted) == 0) break;
  }
  for (auto& list : r.balls)
    for (Ball<double>& ball : list)
      if (!usable || !std::isfinite(ball.mid) || !std::isfinite(ball.rad)) ball.rad = HUGE_VAL;
  return r;
}

/// u of the format that an output, or the gradient of an input, is stored in.
double roundoff_of(const Problem& p, Role role, bool gradient) {
  if (role == Role::state) return 0;
  if (!gradient) return p.arithmetic.output_roundoff;
  return role == Role::log_decay ? p.adjoint.gate_output_roundoff : p.adjoint.state.output_roundoff;
}

/// a + b; exact where both are and a double holds their sum, as in cases of small integers.
Ball<double> sum_of(const Ball<double>& a, const Ball<double>& b) {
  const double sum = a.mid + b.mid, second = sum - a.mid;
  const bool exact = a.mid - (sum - second) == 0 && b.mid - second == 0;
  return exact && a.rad == 0 && b.rad == 0 ? Ball<double>(sum, 0) : a + b;
}

/// Stores a slice's results; gradients of elements that several slices share add up. Outputs that a group of
/// heads shares are the same from each.
void add_result(const SliceProblem& x, const SliceLayout& layout, const std::vector<Ball<double>>& balls,
                const std::vector<ElementBound>& bounds, bool gradient, ReferenceOutput& out) {
  const bool shared = gradient && layout.shared(x.heads);
  size_t i = 0;
  const int64_t width = layout.columns() / layout.parts();
  for (int64_t n = 0; n < layout.rows(x.slice) * layout.parts(); ++n) {
    const int64_t r = n / layout.parts(), part = n % layout.parts();
    const size_t row = static_cast<size_t>(layout.row(x.slice, x.heads, r, part));
    for (int64_t c = 0; c < width; ++c, ++i) {
      const size_t at = row + static_cast<size_t>(c);
      const Ball<double> sum = shared ? sum_of({out.mid[at], out.rad[at]}, balls[i]) : balls[i];
      out.mid[at] = sum.mid, out.rad[at] = sum.rad;
      const double up = shared ? 1 + 0x1p-50 : 1;
      const double kept = shared ? 1 : 0;
      out.bound[at] = (kept * out.bound[at] + bounds[i].bound) * up;
      out.companion[at] = (kept * out.companion[at] + bounds[i].companion) * up;
      out.underflow[at] = (kept * out.underflow[at] + bounds[i].underflow) * up;
    }
  }
}

void explain(ReferenceOutput& out) {
  int64_t unbounded = 0, not_finite = 0;
  for (size_t i = 0; i < out.mid.size(); ++i) {
    const bool endless = std::isinf(out.bound[i]), lost = std::isinf(out.rad[i]);
    unbounded += endless, not_finite += lost && !endless;
    out.wide += endless || too_wide(out.rad[i], out.bound[i]);
  }
  if (out.wide == 0) return;
  out.undecided = fmt::format(
      "{}: {} of {} elements undecided: {} without a finite bound, {} that follow from "
      "inputs that are not finite, {} whose radius is too wide after rung {}",
      out.name, out.wide, out.mid.size(), unbounded, not_finite, out.wide - unbounded - not_finite, out.rung);
}

void require_one_of_each(const Problem& p, const std::vector<ArgumentSpec>& inputs) {
  for (const ArgumentSpec& a : inputs)
    if (!a.instead_of.empty() && p.inputs->count(std::string(a.name)) &&
        p.inputs->count(std::string(a.instead_of)))
      throw BadInput(fmt::format("{}: stands in for {}; give one of the two", a.name, a.instead_of));
}

Problem with_sequences(Problem p) {
  p.sizes.N = p.cu_seqlens.empty() ? p.sizes.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
  return p;
}

ReferenceResult evaluate(const Problem& p, const Operator& op, const Direction& d, bool per_head) {
  const auto start = std::chrono::steady_clock::now();
  require_one_of_each(p, op.inputs);
  std::vector<SliceLayout> inputs;
  for (const ArgumentSpec& a : op.inputs) inputs.emplace_back(a, p.sizes, per_head);
  const int64_t heads = heads_of(inputs, per_head);
  const std::vector<Slice> slices = slices_of(p, heads);
  const std::vector<ArgumentSpec> none;
  ReferenceResult result;
  std::vector<ReferenceOutput*> outs(d.results.size(), nullptr);
  result.outputs.reserve(d.results.size());
  for (size_t a = 0; a < d.results.size(); ++a)
    if (d.wanted[a]) {
      result.outputs.push_back(
          output_of_zeros((d.cotangents ? "d" : "") + std::string(d.results[a].name), d.layouts[a].axes()));
      outs[a] = &result.outputs.back();
      outs[a]->roundoff = roundoff_of(p, d.results[a].role, d.cotangents);
    }
  std::vector<SliceResult> parts(slices.size());
  // In the order of the slices, so that sums over them do not depend on the threads.
  const int64_t batch = std::max<int64_t>(1, 4 * p.threads);
  for (int64_t first = 0; first < static_cast<int64_t>(slices.size()); first += batch) {
    const int64_t count = std::min(batch, static_cast<int64_t>(slices.size()) - first);
    const auto read = [&](int64_t i) {
      return read_slice(p, op.inputs, d.cotangents ? op.outputs : none, op.parameters,
                        slices[static_cast<size_t>(i)], per_head);
    };
    const int each = std::max(1, p.threads / static_cast<int>(std::max<int64_t>(count, 1)));
    parallel_for(count, p.threads, [&](int64_t i) {
      parts[static_cast<size_t>(first + i)] = evaluate_slice(read(first + i), d, each);
    });
    for (int64_t i = first; i < first + count; ++i) {
      SliceResult& part = parts[static_cast<size_t>(i)];
      SliceProblem place;
      place.slice = slices[static_cast<size_t>(i)], place.heads = heads;
      for (size_t a = 0; a < outs.size(); ++a)
        if (outs[a]) {
          add_result(place, d.layouts[a], part.balls[a], part.bounds[a], d.cotangents, *outs[a]);
          outs[a]->rung = std::max(outs[a]->rung, part.rung);
        }
      part = {};
    }
  }
  for (ReferenceOutput& out : result.outputs) explain(out);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

ReferenceResult literal_forward(const Problem& given, const Operator& op, const LiteralRow& row) {
  const Problem p = with_sequences(given);
  Direction d{op.outputs,        {},   std::vector<bool>(op.outputs.size(), true), row.forward,
              row.forward_bound, false};
  for (const ArgumentSpec& a : op.outputs) d.layouts.emplace_back(a, p.sizes, row.per_head);
  return evaluate(p, op, d, row.per_head);
}

ReferenceResult literal_adjoint(const Problem& given, const Operator& op, const LiteralRow& row) {
  const Problem p = with_sequences(given);
  Direction d{op.inputs, {}, {}, row.adjoint, row.adjoint_bound, true};
  for (const ArgumentSpec& a : op.inputs) {
    d.layouts.emplace_back(a, p.sizes, row.per_head);
    d.wanted.push_back(p.inputs->count(std::string(a.name)) > 0);
  }
  return evaluate(p, op, d, row.per_head);
}

}  // namespace assay
