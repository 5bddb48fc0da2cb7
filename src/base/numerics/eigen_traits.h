// Lets Eigen's matrices hold balls, double-doubles, dual numbers and those of multiprecision.h.
#pragma once
#include <Eigen/Core>

#include "src/base/numerics/ball.h"
#include "src/base/numerics/double_double.h"
#include "src/base/numerics/dual.h"

namespace assay {

template <unsigned Digits>
class Mpfr;
template <unsigned Digits>
class Interval;

template <typename Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
template <typename Real>
using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// What Eigen asks of a number type that is not its own.
template <typename T>
struct PlainNumber : Eigen::NumTraits<double> {
  using Real = T;
  using NonInteger = T;
  using Nested = T;
  using Literal = T;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 2,
    AddCost = 4,
    MulCost = 8
  };
};

}  // namespace assay

namespace Eigen {
template <>
struct NumTraits<assay::DoubleDouble> : assay::PlainNumber<assay::DoubleDouble> {};
template <typename T>
struct NumTraits<assay::Ball<T>> : assay::PlainNumber<assay::Ball<T>> {};
template <typename T>
struct NumTraits<assay::Dual<T>> : assay::PlainNumber<assay::Dual<T>> {};
template <unsigned Digits>
struct NumTraits<assay::Mpfr<Digits>> : assay::PlainNumber<assay::Mpfr<Digits>> {};
template <unsigned Digits>
struct NumTraits<assay::Interval<Digits>> : assay::PlainNumber<assay::Interval<Digits>> {};
}  // namespace Eigen
