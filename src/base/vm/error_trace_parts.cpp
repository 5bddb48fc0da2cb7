// Parts of shadows: what each begins with, and how it follows the slopes. In a strict trace these are the
// derivatives at the exact operands.
#include <bit>
#include <cmath>
#include <cstring>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"

namespace assay::vm {

double probe_factor(uint64_t place, int probe) {
  if (probe == 0) return 1;
  uint64_t x = (place + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(probe) * 0xd1b54a32d192ed03u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  constexpr double kRoot3 = 1.7320508075688772;
  return kRoot3 * (static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

/// Derivatives at the exact operands: the slopes of a step are secants, which lead there. In `r` where they
/// are the same but for a product's second.
const ErrorTrace::Result& ErrorTrace::exact_slopes(const Op& op, Sources from, Result& r,
                                                   Result& made) const {
  using Slopes = Facts::Slopes;
  if (facts(op).slopes == Slopes::constant) return r;
  if (facts(op).slopes == Slopes::product) {
    for (int i = 0; i < 32; ++i)
      if (!(r.chosen >> i & 1)) r.slope[1][i] = from[0]->value[i] + from[0]->error[i];
    return r;
  }
  alignas(64) double exact[3][32];
  static constexpr double zeros[32] = {};
  RealStep step = made.step();
  std::memcpy(made.value, r.value, sizeof made.value);
  for (size_t k = 0; k < from.size(); ++k) {
    for (int i = 0; i < 32; ++i) exact[k][i] = from[k]->value[i] + from[k]->error[i];
    step.value[k] = exact[k], step.error[k] = step.bound[k] = zeros;
  }
  op.row->real(step);
  return made;
}

/// The parts of a result's error in `mask`, from cell `first` on. Runs behind keep().
void ErrorTrace::carry_parts(Warp& warp, const Op& op, size_t first, Sources from, Result& r, uint32_t mask) {
  Cells& cells = registers(warp);
  Result at_exact;
  const Result& slopes_of = plan_.strict ? exact_slopes(op, from, r, at_exact) : r;
  const int own = plan_.part_of_op.empty() ? -1 : plan_.part_of_op[op_index(op)];
  const double* slopes[3];
  const double* parts[3];
  uint32_t unbounded = 0;
  for (int p = 0; p < plan_.parts; ++p) {
    int carrying = 0;
    for (size_t k = 0; k < from.size(); ++k)
      if (!from[k]->exact) slopes[carrying] = slopes_of.slope[k], parts[carrying++] = from[k]->part[p];
    alignas(64) double sum[32];
    unbounded |= lane_kit().carry_part(sum, carrying, slopes, parts);
    if (p == own)
      for (int i = 0; i < 32; ++i) sum[i] += r.local[i];
    if (plan_.probes) probe(warp, op, p, r, sum);
    double* const to = cells.part(p) + first;
    if (mask == ~0u)
      std::memcpy(to, sum, sizeof sum);
    else
      each_lane(mask, [&](int lane) { to[lane] = sum[lane]; });
  }
  if (plan_.strict && (unbounded & mask)) mark(warp, op, ErrorKind::lost, unbounded & mask);
}

/// What a step adds to a probe: to the first, what series leave out: of c_n y + c_{n-1} that is next c_{n+1}
/// y^2, of one sign wherever y lies; to the others, that and the step's own doubles times a number by chance,
/// fixed by where it happens.
void ErrorTrace::probe(const Warp& warp, const Op& op, int p, const Result& r, double* sum) const {
  const double share = plan_.inexact_share.empty() || !r.product[0] ? 0 : plan_.inexact_share[op_index(op)];
  if (p == 0 && share == 0) return;
  const uint64_t place = (block_->linear * 64 + warp.index) << 36 ^ order_ << 8;
  for (uint64_t i = 0; i < 32; ++i) {
    const double left_out = share > 0 ? share * r.product[0][i] * r.product[1][i] : 0;
    const double own = std::fabs(left_out) + kStepRoundoff * r.terms[i];
    if (own > 0) sum[i] += p == 0 ? std::fabs(left_out) : own * probe_factor(place ^ i, p);
  }
}

}  // namespace assay::vm
