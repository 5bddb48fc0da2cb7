// How large each kind of rounding is that a declared arithmetic has, and what is left of it that no sample
// covers (rounding_noise.h).
#pragma once
#include "reference/arithmetic.h"

namespace assay {

/// Standard deviations as multiples of a uniform draw from [-1, 1].
struct NoiseAmplitudes {
  float key = 0, query = 0;                     ///< scaled operands on their way into S and G
  float read = 0;                               ///< the scaled operand that reads a state for o or dv
  bool scaled_in_score = false;                 ///< scores are made from scaled operands too
  float o = 0, dq = 0, dk = 0, dv = 0, dg = 0;  ///< scores and copies of that output
  float S_end = 0, G_end = 0;                   ///< a chunk's end
};

/// u: of the operands' format; 1 where operands are split and truncations are declared.
NoiseAmplitudes noise_amplitudes(const Arithmetic&, double u, bool decays);
NoiseAmplitudes noise_amplitudes(const AdjointArithmetic&, double u, bool decays);

/// Of so many roundings: u sqrt(number).
float rounding_amplitude(double u, int roundings);

/// What no sampled rounding covers may add up to on one path, relative to it, of each output.
struct NoiseRests {
  double o = 0, dq = 0, dk = 0, dv = 0, dg = 0;
};

NoiseRests noise_rests(const Arithmetic&, double u, double chunks, bool decays);
NoiseRests noise_rests(const AdjointArithmetic&, double u, double chunks, bool decays);

/// Of declared numbers that hold no roundings of operands any more, every output's together.
double forward_rest(const Arithmetic&, double chunks, bool decays);
double adjoint_rest(const AdjointArithmetic&, double chunks, bool decays);

}  // namespace assay
