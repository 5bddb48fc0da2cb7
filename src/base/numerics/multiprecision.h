// MPFR numbers, and intervals of them, of a precision that the type fixes, so that threads share no state.
// Digits lie in the objects themselves: nothing is allocated, which would cost more than the arithmetic.
#pragma once
#include <mpfr.h>

#include <algorithm>
#include <compare>
#include <ostream>
#include <string>

#include "src/base/numerics/ball.h"

namespace assay {

/// At least `Digits` decimal digits (77: 257 bits). Every operation is rounded to nearest.
template <unsigned Digits>
class Mpfr {
 public:
  static constexpr mpfr_prec_t bits = Digits * 1000 / 301 + (Digits * 1000 % 301 ? 2 : 1);

  Mpfr() { mpfr_custom_init_set(x_, MPFR_ZERO_KIND, 0, bits, limbs_); }
  Mpfr(const Mpfr& other) { copy(other); }
  Mpfr& operator=(const Mpfr& other) {
    if (this != &other) copy(other);
    return *this;
  }
  Mpfr(int value) : Mpfr() { mpfr_set_si(x_, value, MPFR_RNDN); }    // NOLINT: exact
  Mpfr(double value) : Mpfr() { mpfr_set_d(x_, value, MPFR_RNDN); }  // NOLINT: exact
  explicit Mpfr(const char* decimal) : Mpfr() { mpfr_set_str(x_, decimal, 10, MPFR_RNDN); }
  explicit Mpfr(const std::string& decimal) : Mpfr(decimal.c_str()) {}

  mpfr_ptr data() { return x_; }
  mpfr_srcptr data() const { return x_; }
  explicit operator double() const { return mpfr_get_d(x_, MPFR_RNDN); }

  friend Mpfr operator+(const Mpfr& a, const Mpfr& b) {
    Mpfr y;
    mpfr_add(y.x_, a.x_, b.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr operator-(const Mpfr& a, const Mpfr& b) {
    Mpfr y;
    mpfr_sub(y.x_, a.x_, b.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr operator*(const Mpfr& a, const Mpfr& b) {
    Mpfr y;
    mpfr_mul(y.x_, a.x_, b.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr operator/(const Mpfr& a, const Mpfr& b) {
    Mpfr y;
    mpfr_div(y.x_, a.x_, b.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr operator-(const Mpfr& a) {
    Mpfr y;
    mpfr_neg(y.x_, a.x_, MPFR_RNDN);
    return y;
  }
  Mpfr& operator+=(const Mpfr& b) { return mpfr_add(x_, x_, b.x_, MPFR_RNDN), *this; }
  Mpfr& operator-=(const Mpfr& b) { return mpfr_sub(x_, x_, b.x_, MPFR_RNDN), *this; }
  Mpfr& operator*=(const Mpfr& b) { return mpfr_mul(x_, x_, b.x_, MPFR_RNDN), *this; }
  Mpfr& operator/=(const Mpfr& b) { return mpfr_div(x_, x_, b.x_, MPFR_RNDN), *this; }
  friend bool operator==(const Mpfr& a, const Mpfr& b) { return mpfr_equal_p(a.x_, b.x_) != 0; }
  friend std::partial_ordering operator<=>(const Mpfr& a, const Mpfr& b) {
    if (mpfr_unordered_p(a.x_, b.x_)) return std::partial_ordering::unordered;
    return mpfr_cmp(a.x_, b.x_) <=> 0;
  }
  friend Mpfr abs(const Mpfr& a) {
    Mpfr y;
    mpfr_abs(y.x_, a.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr exp(const Mpfr& a) {
    Mpfr y;
    mpfr_exp(y.x_, a.x_, MPFR_RNDN);
    return y;
  }
  friend Mpfr log(const Mpfr& a) {
    Mpfr y;
    mpfr_log(y.x_, a.x_, MPFR_RNDN);
    return y;
  }
  /// For messages: what it is near.
  friend std::ostream& operator<<(std::ostream& out, const Mpfr& x) { return out << static_cast<double>(x); }

 private:
  void copy(const Mpfr& other) {
    std::copy_n(other.limbs_, kLimbs, limbs_);
    x_[0] = other.x_[0];
    mpfr_custom_move(x_, limbs_);
  }
  static constexpr size_t kLimbs = (bits + GMP_NUMB_BITS - 1) / GMP_NUMB_BITS;
  mpfr_t x_;
  mp_limb_t limbs_[kLimbs] = {};
};

/// Every operation rounds outwards: the exact values stay inside. What has no value is [NaN, NaN].
template <unsigned Digits>
class Interval {
 public:
  Interval() = default;
  Interval(int value) : left_(value), right_(value) {}     // NOLINT: exact
  Interval(double value) : left_(value), right_(value) {}  // NOLINT: exact
  Interval(const Mpfr<Digits>& left, const Mpfr<Digits>& right) : left_(left), right_(right) {}

  const Mpfr<Digits>& left() const { return left_; }
  const Mpfr<Digits>& right() const { return right_; }
  /// Its middle, rounded to 53 bits.
  explicit operator double() const {
    mp_limb_t limb;
    mpfr_t middle;
    mpfr_custom_init_set(middle, MPFR_ZERO_KIND, 0, 53, &limb);
    mpfr_add(middle, low(), high(), MPFR_RNDN);
    mpfr_div_2ui(middle, middle, 1, MPFR_RNDN);
    return mpfr_get_d(middle, MPFR_RNDN);
  }

  friend Interval operator+(const Interval& a, const Interval& b) {
    Interval y;
    mpfr_add(y.low(), a.low(), b.low(), MPFR_RNDD), mpfr_add(y.high(), a.high(), b.high(), MPFR_RNDU);
    return y;
  }
  friend Interval operator-(const Interval& a, const Interval& b) {
    Interval y;
    mpfr_sub(y.low(), a.low(), b.high(), MPFR_RNDD), mpfr_sub(y.high(), a.high(), b.low(), MPFR_RNDU);
    return y;
  }
  friend Interval operator-(const Interval& a) {
    Interval y;
    mpfr_neg(y.low(), a.high(), MPFR_RNDD), mpfr_neg(y.high(), a.low(), MPFR_RNDU);
    return y;
  }
  /// Of the four products of ends those that are least and greatest, by the ends' signs.
  friend Interval operator*(const Interval& a, const Interval& b) {
    Interval y;
    if (a.is_zero() || b.is_zero()) return a.is_number() && b.is_number() ? y : Interval(__builtin_nan(""));
    const bool positive = mpfr_sgn(a.low()) >= 0, negative = mpfr_sgn(a.high()) <= 0;
    if (mpfr_sgn(b.low()) >= 0) {
      mpfr_mul(y.low(), a.low(), positive ? b.low() : b.high(), MPFR_RNDD);
      mpfr_mul(y.high(), a.high(), negative ? b.low() : b.high(), MPFR_RNDU);
    } else if (mpfr_sgn(b.high()) <= 0) {
      mpfr_mul(y.low(), a.high(), negative ? b.high() : b.low(), MPFR_RNDD);
      mpfr_mul(y.high(), a.low(), positive ? b.high() : b.low(), MPFR_RNDU);
    } else if (positive || negative) {
      const mpfr_srcptr by = positive ? a.high() : a.low();
      mpfr_mul(y.low(), by, positive ? b.low() : b.high(), MPFR_RNDD);
      mpfr_mul(y.high(), by, positive ? b.high() : b.low(), MPFR_RNDU);
    } else {
      Mpfr<Digits> other;
      mpfr_mul(y.low(), a.low(), b.high(), MPFR_RNDD), mpfr_mul(other.data(), a.high(), b.low(), MPFR_RNDD);
      if (mpfr_less_p(other.data(), y.low())) y.left_ = other;
      mpfr_mul(y.high(), a.low(), b.low(), MPFR_RNDU), mpfr_mul(other.data(), a.high(), b.high(), MPFR_RNDU);
      if (mpfr_greater_p(other.data(), y.high())) y.right_ = other;
    }
    return y;
  }
  /// By one that holds zero: all numbers.
  friend Interval operator/(const Interval& a, const Interval& b) {
    Interval y;
    const bool by_positive = mpfr_sgn(b.low()) > 0;
    if (!a.is_number() || !b.is_number()) return __builtin_nan("");
    if (!by_positive && mpfr_sgn(b.high()) >= 0) {
      mpfr_set_inf(y.low(), -1), mpfr_set_inf(y.high(), 1);
      return y;
    }
    const mpfr_srcptr least = by_positive ? a.low() : a.high(), greatest = by_positive ? a.high() : a.low();
    // |b| is least at `near`, greatest at `far`.
    const mpfr_srcptr near = by_positive ? b.low() : b.high(), far = by_positive ? b.high() : b.low();
    mpfr_div(y.low(), least, (mpfr_sgn(least) >= 0) == by_positive ? far : near, MPFR_RNDD);
    mpfr_div(y.high(), greatest, (mpfr_sgn(greatest) >= 0) == by_positive ? near : far, MPFR_RNDU);
    return y;
  }
  Interval& operator+=(const Interval& b) {
    mpfr_add(low(), low(), b.low(), MPFR_RNDD), mpfr_add(high(), high(), b.high(), MPFR_RNDU);
    return *this;
  }
  Interval& operator-=(const Interval& b) { return *this = *this - b; }
  Interval& operator*=(const Interval& b) { return *this = *this * b; }
  Interval& operator/=(const Interval& b) { return *this = *this / b; }
  /// The same interval, not: the same number.
  friend bool operator==(const Interval& a, const Interval& b) {
    return a.left_ == b.left_ && a.right_ == b.right_;
  }
  friend Interval abs(const Interval& a) {
    if (mpfr_sgn(a.high()) <= 0) return -a;
    Interval y = a;
    if (mpfr_sgn(a.low()) >= 0) return y;
    y.right_ = std::max(-a.left_, a.right_), y.left_ = 0;
    return y;
  }
  friend Interval exp(const Interval& a) {
    Interval y;
    mpfr_exp(y.low(), a.low(), MPFR_RNDD), mpfr_exp(y.high(), a.high(), MPFR_RNDU);
    return y;
  }
  friend Interval log(const Interval& a) {
    Interval y;
    mpfr_log(y.low(), a.low(), MPFR_RNDD), mpfr_log(y.high(), a.high(), MPFR_RNDU);
    return y;
  }

 private:
  mpfr_ptr low() { return left_.data(); }
  mpfr_ptr high() { return right_.data(); }
  mpfr_srcptr low() const { return left_.data(); }
  mpfr_srcptr high() const { return right_.data(); }
  bool is_number() const { return !mpfr_nan_p(low()) && !mpfr_nan_p(high()); }
  bool is_zero() const { return mpfr_zero_p(low()) && mpfr_zero_p(high()); }
  Mpfr<Digits> left_, right_;
};

/// Smallest [mid - rad, mid + rad] with double mid and rad around an interval; rad = inf for NaN.
template <unsigned Digits>
Ball<double> enclose(const Interval<Digits>& x) {
  Ball<double> ball;
  ball.mid = static_cast<double>(x);
  Mpfr<Digits> difference;
  mpfr_sub_d(difference.data(), x.right().data(), ball.mid, MPFR_RNDU);
  const double above = mpfr_get_d(difference.data(), MPFR_RNDU);
  mpfr_sub_d(difference.data(), x.left().data(), ball.mid, MPFR_RNDD);
  const double below = -mpfr_get_d(difference.data(), MPFR_RNDD);
  ball.rad = above > below ? above : below;
  if (!(ball.rad >= 0)) ball.rad = __builtin_inf();
  return ball;
}

}  // namespace assay
