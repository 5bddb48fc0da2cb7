// Parts of shadows: what each begins with, and how it follows the slopes. In a strict trace these are the
// derivatives at the exact operands.
#include <bit>
#include <cmath>
#include <cstring>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/error_trace.h"
#include "src/base/vm/shadow_kit.h"

namespace assay::vm {

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
  uint32_t carried = 0;
  for (const Operand* operand : from) carried |= operand->parted;
  Result at_exact;
  const Result& slopes_of = plan_.strict && carried ? exact_slopes(op, from, r, at_exact) : r;
  const int own = plan_.part_of_op.empty() ? -1 : plan_.part_of_op[op_index(op)];
  const Probes probes(*this, warp, op, r);
  uint32_t unbounded = 0;
  for (int p = 0; p < plan_.parts; ++p) {
    const bool adds = p == own || probes.reach(p);
    const double* slopes[3];
    const double* parts[3];
    int carrying = 0;
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k]->parted >> p & 1)
        slopes[carrying] = slopes_of.slope[k], parts[carrying++] = from[k]->part[p];
    if (carrying == 0 && !adds) {
      keep_part(warp, first, p, nullptr, mask);
      continue;
    }
    alignas(64) double sum[32];
    PartSum made = shadow_kit_.carry_part(sum, carrying, slopes, parts);
    unbounded |= made.unbounded;
    if (p == own)
      for (int i = 0; i < 32; ++i) sum[i] += r.local[i];
    if (probes.reach(p)) shadow_kit_.add_probe(sum, probes.sizes, probes.place, p);
    keep_part(warp, first, p, made.any || adds ? sum : nullptr, mask);
  }
  if (plan_.strict && (unbounded & mask)) mark(warp, op, ErrorKind::lost, unbounded & mask);
}

/// Part `p` of the shadows that a row of registers holds in `mask`, from cell `first` on; null: zeros.
void ErrorTrace::keep_part(const Warp& warp, size_t first, int p, const double* part, uint32_t mask) {
  Cells& cells = registers(warp);
  uint16_t& known = cells.parted[first / Cells::kRow];
  const auto bit = static_cast<uint16_t>(1u << p);
  if (!part && !(known & bit)) return;
  double* const to = cells.part(p) + first;
  if (mask == ~0u) {
    known = static_cast<uint16_t>(part ? known | bit : known & ~bit);
    if (part)
      std::memcpy(to, part, 32 * sizeof *to);
    else
      std::memset(to, 0, 32 * sizeof *to);
    return;
  }
  if (!(known & bit)) known |= bit;
  static constexpr double zeros[32] = {};
  kit_.blend_wide(to, part ? part : zeros, mask);
}

/// What a step adds to the probes: to the first, what series leave out: of c_n y + c_{n-1} that is next
/// c_{n+1} y^2, of one sign wherever y lies; to the others, that and the step's own doubles times a number by
/// chance, fixed by where it happens.
ErrorTrace::Probes::Probes(const ErrorTrace& trace, const Warp& warp, const Op& op, const Result& r)
    : asked(trace.plan_.probes) {
  if (!asked) return;
  const std::vector<double>& shares = trace.plan_.inexact_share;
  const double share = shares.empty() || !r.product[0] ? 0 : shares[trace.op_index(op)];
  leaves_out = share > 0;
  place = (trace.block_->linear * 64 + warp.index) << 36 ^ trace.order_ << 8;
  trace.shadow_kit_.sizes_of_probes(sizes, share, r.product[0], r.product[1], kStepRoundoff, r.terms);
}

}  // namespace assay::vm
