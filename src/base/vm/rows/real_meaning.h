// What arithmetic rows mean on real numbers, next to what they do to bits. One step of f gives, per lane, its
// own rounding error f(x) - d (x the machine's operands, d the machine's result) and the secant slopes
//   f(x + e) - f(x) = sum slope_i e_i
// along the errors e that the operands carry, so that (exact result) - d = local + sum slope_i e_i is an
// identity, not a linearisation. Included by lane rows only: no library templates here (lane_rows.h).
#pragma once
#include "src/base/vm/real_exponential.h"
#include "src/base/vm/real_trigonometric.h"
#include "src/base/vm/rows/exponential_lanes.h"
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {

/// M::is_slow: by calls, which neighbours with the same argument share.
template <class M>
concept IsSlow = M::is_slow;
/// M::locals: of all lanes at once.
template <class M>
concept MakesLocals = requires(double* to, const RealStep& step) {
  M::locals(to, step);
};

/// Every lane's step by M, which has `arity`, local(d, x) and slopes(s, x, e). Where e or its bound is 0 by
/// the operand's own rounding the slope may be anything.
template <class M>
void real_lanes(const RealStep& step) {
  if constexpr (MakesLocals<M>) M::locals(step.local, step);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) {
    double x[3], e[3], s[3];
    for (int k = 0; k < M::arity; ++k) x[k] = step.value[k][i], e[k] = step.error[k][i];
    double local = 0;
    const bool repeats = IsSlow<M> && i > 0 && x[0] == step.value[0][i - 1] && e[0] == step.error[0][i - 1] &&
                         step.result[i] == step.result[i - 1];
    if (repeats) {
      local = step.local[i - 1], s[0] = step.slope[0][i - 1];
    } else {
      if constexpr (MakesLocals<M>)
        local = step.local[i];
      else
        local = M::local(step.result[i], x);
      M::slopes(s, x, e);
    }
    double error = local, bound = __builtin_fabs(local);
    for (int k = 0; k < M::arity; ++k) {
      const double b = step.bound[k][i];
      error += e[k] != 0 ? s[k] * e[k] : 0;
      bound += b != 0 ? __builtin_fabs(s[k]) * b : 0;
      step.slope[k][i] = s[k];
    }
    step.local[i] = local, step.result_error[i] = error, step.result_bound[i] = bound;
  }
}

/// (a + b) - d. The sum of two doubles is exact as s + rest; d is s rounded, so that s - d is exact or a
/// result far below the operands' last bits (Sterbenz).
inline double sum_minus(double a, double b, double d) {
  const double s = a + b, t = s - a;
  const double rest = (a - (s - t)) + (b - t);
  return (s - d) + rest;
}
/// a b = high + low exactly. Operands of at most 26 bits (f32, f16, bf16): the product is a double already.
template <bool wide>
inline double product_rest(double a, double b, double p) {
  if constexpr (!wide) return 0;
  const double ta = a * 0x8000001p0, tb = b * 0x8000001p0;  // Dekker's splitting
  const double ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

struct RealCopy {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return x[0] - d; }
  static void slopes(double* s, const double*, const double*) { s[0] = 1; }
};
struct RealNegation {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return -x[0] - d; }
  static void slopes(double* s, const double*, const double*) { s[0] = -1; }
};
struct RealMagnitude {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return __builtin_fabs(x[0]) - d; }
  static void slopes(double* s, const double* x, const double* e) {
    const double to = x[0] + e[0], side = x[0] < 0 ? -1 : 1;
    const bool crossed = e[0] != 0 && (to < 0) != (x[0] < 0);
    s[0] = crossed ? (__builtin_fabs(to) - __builtin_fabs(x[0])) / e[0] : side;
  }
};
struct RealSum {
  static constexpr int arity = 2;
  static double local(double d, const double* x) { return sum_minus(x[0], x[1], d); }
  static void slopes(double* s, const double*, const double*) { s[0] = s[1] = 1; }
};
struct RealDifference {
  static constexpr int arity = 2;
  static double local(double d, const double* x) { return sum_minus(x[0], -x[1], d); }
  static void slopes(double* s, const double*, const double*) { s[0] = 1, s[1] = -1; }
};
template <bool wide>
struct RealProduct {
  static constexpr int arity = 2;
  static double local(double d, const double* x) {
    const double p = x[0] * x[1];
    return (p - d) + product_rest<wide>(x[0], x[1], p);
  }
  static void slopes(double* s, const double* x, const double* e) { s[0] = x[1] + e[1], s[1] = x[0]; }
};
template <bool wide>
struct RealFused {
  static constexpr int arity = 3;
  static double local(double d, const double* x) {
    const double p = x[0] * x[1];
    return sum_minus(p, x[2], d) + product_rest<wide>(x[0], x[1], p);
  }
  static void slopes(double* s, const double* x, const double* e) {
    s[0] = x[1] + e[1], s[1] = x[0], s[2] = 1;
  }
};
/// a / b - d = (a - d b) / b.
template <bool wide>
struct RealQuotient {
  static constexpr int arity = 2;
  static double local(double d, const double* x) {
    const double p = d * x[1];
    return ((x[0] - p) - product_rest<wide>(d, x[1], p)) / x[1];
  }
  static void slopes(double* s, const double* x, const double* e) {
    s[0] = 1 / (x[1] + e[1]), s[1] = -(x[0] / x[1]) / (x[1] + e[1]);
  }
};
template <bool wide>
struct RealReciprocal {
  static constexpr int arity = 1;
  static double local(double d, const double* x) {
    const double p = d * x[0];
    return ((1 - p) - product_rest<wide>(d, x[0], p)) / x[0];
  }
  static void slopes(double* s, const double* x, const double* e) { s[0] = -1 / (x[0] * (x[0] + e[0])); }
};
/// sqrt(a) - d = (a - d d) / (sqrt(a) + d).
template <bool wide>
struct RealRoot {
  static constexpr int arity = 1;
  static double local(double d, const double* x) {
    const double p = d * d, sum = __builtin_sqrt(x[0]) + d;
    return sum == 0 ? 0 : ((x[0] - p) - product_rest<wide>(d, d, p)) / sum;
  }
  static void slopes(double* s, const double* x, const double* e) {
    s[0] = 1 / (__builtin_sqrt(x[0]) + __builtin_sqrt(x[0] + e[0]));
  }
};
/// 1 / sqrt(a) - d = (1 - d d a) / (sqrt(a) (1 + d sqrt(a))).
template <bool wide>
struct RealReciprocalRoot {
  static constexpr int arity = 1;
  static double local(double d, const double* x) {
    const double square = d * d, rest = product_rest<wide>(d, d, square), p = square * x[0],
                 root = __builtin_sqrt(x[0]);
    return (((1 - p) - product_rest<true>(square, x[0], p)) - rest * x[0]) / (root * (1 + d * root));
  }
  static void slopes(double* s, const double* x, const double* e) {
    const double before = __builtin_sqrt(x[0]), after = __builtin_sqrt(x[0] + e[0]);
    s[0] = -1 / (before * after * (before + after));
  }
};
struct RealExponential {
  static constexpr int arity = 1;
  static constexpr bool is_slow = true;
  static void locals(double* to, const RealStep& step) {
    exponentials::minus_all(to, step.value[0], step.result);
  }
  static void slopes(double* s, const double* x, const double* e) { s[0] = exponential2_slope(x[0], e[0]); }
};
struct RealLogarithm {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return logarithm2_minus(x[0], d); }
  static void slopes(double* s, const double* x, const double* e) { s[0] = logarithm2_slope(x[0], e[0]); }
};
struct RealSine {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return sine_minus(x[0], d); }
  static void slopes(double* s, const double* x, const double* e) { s[0] = sine_slope(x[0], e[0]); }
};
struct RealCosine {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return cosine_minus(x[0], d); }
  static void slopes(double* s, const double* x, const double* e) { s[0] = cosine_slope(x[0], e[0]); }
};
struct RealHyperbolicTangent {
  static constexpr int arity = 1;
  static double local(double d, const double* x) { return hyperbolic_tangent_minus(x[0], d); }
  static void slopes(double* s, const double* x, const double* e) {
    s[0] = hyperbolic_tangent_slope(x[0], e[0]);
  }
};
/// Moves first a, then b: each secant lies in [0, 1].
template <bool maximum>
struct RealExtreme {
  static constexpr int arity = 2;
  static bool first(double a, double b) { return (a < b) != maximum; }
  static double pick(double a, double b) { return first(a, b) ? a : b; }
  static double local(double d, const double* x) { return pick(x[0], x[1]) - d; }
  static void slopes(double* s, const double* x, const double* e) {
    const double a = x[0] + e[0], b = x[1] + e[1];
    const bool start = first(x[0], x[1]), half = first(a, x[1]), end = first(a, b);
    s[0] = start == half || e[0] == 0 ? start : (pick(a, x[1]) - pick(x[0], x[1])) / e[0];
    s[1] = half == end || e[1] == 0 ? !half : (pick(a, b) - pick(a, x[1])) / e[1];
  }
};
/// M, then cut to [0, 1] (.sat) or [0, inf) (.relu).
template <class M, bool unit>
struct RealClamped {
  static constexpr int arity = M::arity;
  static double cut(double t) { return t < 0 ? 0 : unit && t > 1 ? 1 : t; }
  /// An uncut value keeps M's exact difference.
  static double local(double d, const double* x) {
    const double rounding = M::local(d, x), t = d + rounding;
    return cut(t) == t ? rounding : cut(t) - d;
  }
  static void slopes(double* s, const double* x, const double* e) {
    M::slopes(s, x, e);
    const double t = M::local(0, x);
    double moved = 0;
    for (int k = 0; k < arity; ++k) moved += e[k] != 0 ? s[k] * e[k] : 0;
    const bool uncut = cut(t) == t && cut(t + moved) == t + moved;  // then the slopes stay as exact as M's
    const double share = uncut ? 1 : moved != 0 ? (cut(t + moved) - cut(t)) / moved : 0;
    for (int k = 0; k < arity; ++k) s[k] *= share;
  }
};

}  // namespace assay::vm::ASSAY_LANES
