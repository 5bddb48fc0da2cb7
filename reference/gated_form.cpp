#include "reference/gated_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "reference/exact_grid.h"
#include "reference/gated_kernels.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/exponential.h"

namespace assay {
namespace {

int64_t sequences(const Problem& p) {
  return p.cu_seqlens.empty() ? p.sizes.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
}

const Tensor* find_part(const Problem& p, std::string_view name, int64_t size) {
  return name.empty() ? nullptr : find_input(p, name, size);
}

}  // namespace

GatedTensors::GatedTensors(const Problem& p, const GatedForm& f)
    : form(f),
      q(require_input(p, f.q, p.sizes.B * p.sizes.T * p.sizes.H * p.sizes.K)),
      k(require_input(p, f.k, p.sizes.B * p.sizes.T * p.sizes.H * p.sizes.K)),
      v(require_input(p, f.v, p.sizes.B * p.sizes.T * p.sizes.H * p.sizes.V)),
      gate(find_part(p, f.gate, p.sizes.B * p.sizes.T * p.sizes.H * (f.per_channel ? p.sizes.K : 1))),
      head_gate(find_part(p, f.head_gate, p.sizes.H)),
      S0(find_part(p, f.state, sequences(p) * p.sizes.H * p.sizes.K * p.sizes.V)),
      bonus(f.bonus.empty() ? nullptr : &require_input(p, f.bonus, p.sizes.H * p.sizes.K)),
      H_(p.sizes.H),
      K_(p.sizes.K) {
  if (gate && head_gate)
    throw BadInput(fmt::format("{}: stands in for {}; give one of the two", f.head_gate, f.gate));
  for (int64_t h = 0; f.fixed && h < H_; ++h) fixed_.push_back(f.fixed(p, h));
  decays_ = (gate && !all_zero(*gate)) || (head_gate && !all_zero(*head_gate)) ||
            std::any_of(fixed_.begin(), fixed_.end(), [](const FixedDecay& d) { return d.log != 0; });
}

void GatedTensors::read_decays(const Slice& s, int64_t first, int64_t tokens, double* g, double* a) const {
  const int64_t n = tokens * K_, row = s.first_row + first;
  const auto fill = [&](double log, double weight, int64_t from, int64_t count) {
    std::fill(g + from, g + from + count, log);
    if (a) std::fill(a + from, a + from + count, weight);
  };
  if (gate && form.per_channel) {
    decode_rows(*gate, row, tokens, H_, s.h, K_, g);
    if (a) gated_kernels().exponentials(g, n, a);
  } else if (gate) {
    for (int64_t t = 0; t < tokens; ++t) {
      double log;
      decode_run(*gate, (row + t) * H_ + s.h, 1, &log);
      fill(log, exponential(log), t * K_, K_);
    }
  } else if (head_gate) {
    double log;
    decode_run(*head_gate, s.h, 1, &log);
    fill(log, exponential(log), 0, n);
  } else if (form.fixed) {
    const FixedDecay& decay = fixed_[static_cast<size_t>(s.h)];
    fill(decay.log, decay.weight.hi, 0, n);
  } else {
    fill(0, 1, 0, n);
  }
}

std::optional<DoubleDouble> GatedTensors::fixed_weight(int64_t head) const {
  if (fixed_.empty()) return std::nullopt;
  return fixed_[static_cast<size_t>(head)].weight;
}

std::vector<double> GatedTensors::read_bonus(int64_t head) const {
  std::vector<double> u;
  if (!bonus) return u;
  u.resize(static_cast<size_t>(K_));
  decode_run(*bonus, head * K_, K_, u.data());
  return u;
}

}  // namespace assay
