#include "reference/bound_adjoint.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"

namespace assay {
namespace {

AdjointArithmetic of_run(AdjointArithmetic a, bool decays) {
  const bool exact = claims_exact(a);
  a.state = arithmetic_of_run(a.state, decays), a.adjoint = arithmetic_of_run(a.adjoint, decays);
  if (exact) a.state.stored = a.adjoint.stored = 0;
  if (decays) {
    a.value_readout += (1 + a.value_readout) * a.value_readout_decayed;
    a.gate_readout += (1 + a.gate_readout) * a.gate_readout_decayed;
  } else {
    a.value_readout_decayed = a.gate_readout_decayed = a.value_readout_scaled = 0;
  }
  return a;
}

struct Row {
  double largest = 0, sum = 0;
};

Row row_of(const std::vector<double>& x, int64_t t, int64_t width) {
  Row row;
  for (int64_t i = t * width; i < (t + 1) * width; ++i) {
    const double magnitude = std::fabs(x[static_cast<size_t>(i)]);
    row.largest = std::fmax(row.largest, magnitude), row.sum += magnitude;
  }
  return row;
}

double largest_of(const std::vector<double>& x) {
  double largest = 0;
  for (double y : x) largest = std::fmax(largest, std::fabs(y));
  return largest;
}

}  // namespace

AdjointBoundModel::AdjointBoundModel(const AdjointArithmetic& arithmetic, bool decays)
    : arithmetic_(of_run(arithmetic, decays)),
      state_(arithmetic_.state),
      adjoint_(arithmetic_.adjoint),
      exact_claimed_(claims_exact(arithmetic)) {}

double AdjointBoundModel::own_error(Gradient gradient, int64_t tokens, double sums) const {
  // A path crosses every token once, in S or in G; both are read, each with its own part of the roundings.
  if (state_.stored() == 0 && adjoint_.stored() == 0)
    return gamma(6 * static_cast<double>(tokens) + sums + 32, kDoubleRoundoff);
  const bool last = gradient == Gradient::initial_state;
  return state_.own_error(tokens, sums + 16) + adjoint_.own_error(tokens, sums + 16, last);
}

double AdjointBoundModel::roundoff(Gradient gradient) const {
  if (gradient == Gradient::initial_state) return 0;
  return gradient == Gradient::g ? arithmetic_.gate_output_roundoff : arithmetic_.state.output_roundoff;
}

double AdjointBoundModel::value_readout(double nats) const {
  const double scaled =
      adjoint_.scaled_error(arithmetic_.value_readout_scaled, arithmetic_.value_readout_decayed, nats);
  return arithmetic_.value_readout + (1 + arithmetic_.value_readout) * scaled;
}

std::vector<double> AdjointBoundModel::nats_of(const SliceInputs& x) const {
  const bool asked =
      state_.scaled_chunk() > 0 || adjoint_.scaled_chunk() > 0 || arithmetic_.value_readout_scaled > 0;
  std::vector<double> widest(static_cast<size_t>(x.tokens), asked ? 0 : HUGE_VAL);
  if (!asked) return widest;
  for (const int64_t chunk : {arithmetic_.state.chunk, arithmetic_.adjoint.chunk})
    for (int64_t first = 0; first < x.tokens; first += std::max<int64_t>(chunk, 1)) {
      const int64_t end = std::min(x.tokens, first + std::max<int64_t>(chunk, 1));
      std::vector<double> sums(static_cast<size_t>(x.K));
      const double* const g = x.g.data() + (x.g.empty() ? 0 : first * x.K);
      for_each_element(x.g.empty() ? 0 : static_cast<size_t>((end - first) * x.K), sums.size(),
                       [&](size_t i, size_t, size_t c) { sums[c] += std::fabs(g[i]); });
      double most = chunk > 0 ? 0 : HUGE_VAL;
      for (const double sum : sums) most = std::fmax(most, sum * (1 + 0x1p-30));
      for (int64_t t = first; t < end; ++t)
        widest[static_cast<size_t>(t)] = std::fmax(widest[static_cast<size_t>(t)], most);
    }
  return widest;
}

double AdjointBoundModel::relative_part(Gradient gradient, double companion, double excess, double g,
                                        double nats) const {
  double readout = 0;
  switch (gradient) {
    case Gradient::q:
      readout = state_.read_out(nats);
      break;
    case Gradient::k:
      readout = adjoint_.read_out(nats);
      break;
    case Gradient::v:
      readout = value_readout(nats);
      break;
    case Gradient::g: {
      const double d = std::fmax(state_.decay_error(g), adjoint_.decay_error(g));
      readout = d + (1 + d) * arithmetic_.gate_readout;
      break;
    }
    case Gradient::initial_state:
    case Gradient::bonus:
      break;
  }
  return excess + readout * (companion + excess);
}

AdjointMagnitudes::AdjointMagnitudes(const SliceInputs& x, const AdjointBoundModel& model)
    : V_(x.V), scale_(std::fabs(x.scale)) {
  const auto T = static_cast<size_t>(x.tokens);
  v_sum_.resize(T), k_sum_.resize(T), do_sum_.resize(T), R_.resize(T), Q_.resize(T);
  const double at_least_one = std::fmax(1.0, scale_);
  double q_sum = 0, q_max = 0, k_max = 0, v_max = 0, do_max = 0, R = 0, Q = 0;
  std::vector<double> from_q(T);
  states_ = largest_of(x.S0), adjoints_ = largest_of(x.dS);
  R = 1 + states_, Q = 1 + adjoints_;
  double k_row = 0, v_row = 0, do_row = 0;
  const double largest_input = std::fmax(states_, adjoints_);
  for (size_t t = 0; t < T; ++t) {
    const auto at = static_cast<int64_t>(t);
    const Row q = row_of(x.q, at, x.K), k = row_of(x.k, at, x.K), v = row_of(x.v, at, x.V),
              d = row_of(x.d_o, at, x.V);
    v_sum_[t] = static_cast<double>(x.V) + v.sum, k_sum_[t] = static_cast<double>(x.K) + k.sum;
    do_sum_[t] = static_cast<double>(x.V) + d.sum;
    states_ += k.largest * v.largest, adjoints_ += at_least_one * q.largest * d.largest;
    R_[t] = R += (1 + k.largest) * (1 + v.largest);
    from_q[t] = (1 + scale_) * (1 + q.largest) * (1 + d.largest);
    q_sum = std::fmax(q_sum, q.sum), k_row = std::fmax(k_row, k.sum), v_row = std::fmax(v_row, v.sum),
    do_row = std::fmax(do_row, d.sum);
    q_max = std::fmax(q_max, q.largest), k_max = std::fmax(k_max, k.largest),
    v_max = std::fmax(v_max, v.largest), do_max = std::fmax(do_max, d.largest);
  }
  for (size_t t = T; t-- > 0;) Q_[t] = Q += from_q[t];
  const double tokens = static_cast<double>(x.tokens);
  const std::vector<double> nats = model.nats_of(x);
  const double widest_chunk = nats.empty() ? 0 : *std::max_element(nats.begin(), nats.end());
  for (const auto& [side, a] : {std::pair{&model.state(), &model.arithmetic().state},
                                {&model.adjoint(), &model.arithmetic().adjoint}}) {
    const double chunks = a->chunk > 0 ? std::ceil(tokens / static_cast<double>(a->chunk)) : 0;
    inflation_ *= std::pow(side->inflation_per_token(), tokens + 1);
    inflation_ *= std::pow(side->inflation_per_chunk(), chunks);
    ends_ *= side->inflation_of_ends() * side->inflation_of_prefix(widest_chunk);
  }
  ends_ *= (1 + model.value_readout(HUGE_VAL)) * (1 + model.arithmetic().gate_readout);
  const double bonus = largest_of(x.bonus);
  ends_ *= (1 + bonus) * (1 + model.arithmetic().bonus);
  const double inputs = at_least_one * std::max({1.0, bonus, largest_input, q_max, k_max, v_max, do_max});
  const double products = at_least_one * std::fmax(do_row * v_max, q_sum * k_max);
  const double common = std::max({inputs, products, at_least_one * states_, adjoints_});
  const auto widest = [&](Gradient gradient) -> double& { return widest_[static_cast<size_t>(gradient)]; };
  widest(Gradient::q) = std::fmax(common, at_least_one * do_row * states_);
  widest(Gradient::k) = std::fmax(common, v_row * adjoints_);
  widest(Gradient::v) = std::fmax(common, k_row * adjoints_);
  widest(Gradient::g) = std::max({widest(Gradient::q), widest(Gradient::k),
                                  static_cast<double>(x.V) * states_ * std::fmax(1.0, adjoints_)});
  widest(Gradient::initial_state) = common;
  widest(Gradient::bonus) = widest(Gradient::g);
  for (double g : x.g)
    if (!(g <= 0)) inflation_ = HUGE_VAL;  // the model has weights <= 1
}

double AdjointMagnitudes::spread(Gradient gradient, int64_t at) const {
  const auto t = static_cast<size_t>(at);
  const double all = kUnderflowEvents * inflation_ * ends_ * (1 + 0x1p-20);
  switch (gradient) {
    case Gradient::q:
      return all * (1 + scale_) * do_sum_[t] * R_[t];
    case Gradient::k:
      return all * v_sum_[t] * Q_[t];
    case Gradient::v:
      return all * k_sum_[t] * Q_[t];
    case Gradient::g:
      return all * static_cast<double>(V_) * R_[t] * Q_[t];
    case Gradient::initial_state:
      return Q_.empty() ? 0 : all * Q_[0];
    case Gradient::bonus:
      return Q_.empty() ? 0 : all * static_cast<double>(V_) * R_.back() * Q_[0];
  }
  return HUGE_VAL;
}

bool AdjointMagnitudes::overflows(Gradient gradient) const {
  return !(inflation_ * ends_ * widest_[static_cast<size_t>(gradient)] < kOverflow);
}

}  // namespace assay
