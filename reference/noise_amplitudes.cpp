#include "reference/noise_amplitudes.h"

#include <cmath>

#include "reference/rounding_noise.h"

namespace assay {
namespace {

/// Terms that have decayed by n nats weigh e^-n, and n e^-n <= (2 / e) e^(-n/2): all of them together are
/// off as terms of half the decay are by less than one nat; where decays differ much from token to token, by
/// some.
constexpr double kNats = 4;

/// Of so much in roundings and truncations, none above `single`, what has either sign.
float split_amplitude(double declared, double single) {
  return static_cast<float>(std::sqrt(declared * single));
}

NoiseAmplitudes rounded_amplitudes(const Arithmetic& a, double u, bool decays) {
  const auto count = [&](double always, double decayed) {
    return roundings_in(always, u) + (decays ? roundings_in(decayed, u) : 0);
  };
  NoiseAmplitudes y;
  y.key = rounding_amplitude(u, count(a.write, a.write_decayed + a.write_scaled));
  y.read = rounding_amplitude(u, count(0, a.readout_decayed + a.readout_scaled));
  y.scaled_in_score = y.read > 0;
  y.o = rounding_amplitude(u, roundings_in(a.readout, u));
  return y;
}

NoiseAmplitudes rounded_amplitudes(const AdjointArithmetic& a, double u, bool decays) {
  const auto count = [&](double always, double decayed) {
    return roundings_in(always, u) + (decays ? roundings_in(decayed, u) : 0);
  };
  NoiseAmplitudes y;
  y.key = rounding_amplitude(u, count(a.state.write, a.state.write_decayed + a.state.write_scaled));
  y.query = rounding_amplitude(u, count(a.adjoint.write, a.adjoint.write_decayed + a.adjoint.write_scaled));
  y.read = rounding_amplitude(u, count(0, a.value_readout_decayed + a.value_readout_scaled));
  y.scaled_in_score = y.read > 0;
  y.dq = rounding_amplitude(u, count(a.state.readout, a.state.readout_decayed + a.state.readout_scaled));
  y.dk =
      rounding_amplitude(u, count(a.adjoint.readout, a.adjoint.readout_decayed + a.adjoint.readout_scaled));
  y.dv = rounding_amplitude(u, roundings_in(a.value_readout, u));
  y.dg = rounding_amplitude(u, count(a.gate_readout, a.gate_readout_decayed));
  return y;
}

/// Of split operands, where truncations are declared.
NoiseAmplitudes split_amplitudes(const Arithmetic& a) {
  NoiseAmplitudes y;
  y.key = split_amplitude(a.write, a.single), y.o = split_amplitude(a.readout, a.single);
  y.S_end = split_amplitude(a.boundary, a.single);
  return y;
}
NoiseAmplitudes split_amplitudes(const AdjointArithmetic& a) {
  const Arithmetic &S = a.state, &G = a.adjoint;
  NoiseAmplitudes y;
  y.key = split_amplitude(S.write, S.single), y.query = split_amplitude(G.write, G.single);
  y.dq = split_amplitude(S.readout, S.single), y.dk = split_amplitude(G.readout, G.single);
  y.dv = split_amplitude(a.value_readout, G.single);
  y.S_end = split_amplitude(S.boundary, S.single), y.G_end = split_amplitude(G.boundary, G.single);
  return y;
}

/// What may have one sign where operands are split.
double split_rest(const Arithmetic& a, double chunks, bool decays) {
  const double scaled = a.write_decayed + a.write_scaled + a.readout_decayed + a.readout_scaled,
               crossed = chunks * a.crossing + kNats * a.decay_per_nat;
  return a.truncated / 2 + a.bonus + (decays ? scaled + crossed : 0);
}

NoiseRests split_rests(const AdjointArithmetic& a, double chunks, bool decays) {
  Arithmetic values = a.adjoint;
  values.readout_decayed = a.value_readout_decayed, values.readout_scaled = a.value_readout_scaled;
  return {.dq = split_rest(a.state, chunks, decays) + a.bonus,
          .dk = split_rest(a.adjoint, chunks, decays) + a.bonus,
          .dv = split_rest(values, chunks, decays) + a.bonus};
}

}  // namespace

float rounding_amplitude(double u, int roundings) {
  return static_cast<float>(u * std::sqrt(roundings));
}

NoiseAmplitudes noise_amplitudes(const Arithmetic& a, double u, bool decays) {
  return u < 1 ? rounded_amplitudes(a, u, decays) : split_amplitudes(a);
}

NoiseAmplitudes noise_amplitudes(const AdjointArithmetic& a, double u, bool decays) {
  return u < 1 ? rounded_amplitudes(a, u, decays) : split_amplitudes(a);
}

double forward_rest(const Arithmetic& a, double chunks, bool decays) {
  const double scaled = a.write_decayed + a.write_scaled + a.readout_decayed + a.readout_scaled;
  const double ends = a.write + a.readout + (decays ? scaled : 0) + a.bonus;
  return ends + chunks * (a.boundary + (decays ? a.crossing : 0)) + (decays ? kNats * a.decay_per_nat : 0);
}

double adjoint_rest(const AdjointArithmetic& a, double chunks, bool decays) {
  return forward_rest(a.state, chunks, decays) + forward_rest(a.adjoint, chunks, decays) + a.value_readout +
         a.gate_readout + a.bonus +
         (decays ? a.value_readout_decayed + a.value_readout_scaled + a.gate_readout_decayed : 0);
}

NoiseRests noise_rests(const Arithmetic& a, double u, double chunks, bool decays) {
  if (u >= 1) return {.o = split_rest(a, chunks, decays)};
  return {.o = forward_rest(without_roundings(a, u), chunks, decays)};
}

NoiseRests noise_rests(const AdjointArithmetic& a, double u, double chunks, bool decays) {
  if (u >= 1) return split_rests(a, chunks, decays);
  const double rest = adjoint_rest(without_roundings(a, u), chunks, decays);
  return {.dq = rest, .dk = rest, .dv = rest, .dg = rest};
}

}  // namespace assay
