// sin, cos and tanh beyond double precision, as differences from the machine's result.
#pragma once

namespace assay::vm {

/// sin(x) - d, from a sine rounded to 128 bits; NaN for infinite x.
double sine_minus(double x, double d);
/// (sin(x + e) - sin(x)) / e; the derivative at e = 0.
double sine_slope(double x, double e);
double cosine_minus(double x, double d);
double cosine_slope(double x, double e);
double hyperbolic_tangent_minus(double x, double d);
double hyperbolic_tangent_slope(double x, double e);

}  // namespace assay::vm
