#include "src/verification/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

namespace assay {
namespace {

/// A reference output that is 1 everywhere with bound 1/8 and companion 2, and a tensor equal to it.
ReferenceOutput ones(std::vector<Axis> axes) {
  ReferenceOutput r;
  r.name = "o";
  r.axes = std::move(axes);
  int64_t n = 1;
  for (const Axis& axis : r.axes) n *= axis.size;
  r.mid.assign(n, 1), r.rad.assign(n, 0x1p-30), r.bound.assign(n, 0.125), r.companion.assign(n, 2);
  return r;
}

Tensor like(const ReferenceOutput& r, Dtype dtype) {
  Tensor t(r.name, dtype, r.axes);
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, r.mid[i]);
  return t;
}

const FoldedField& field(const OutputComparison& c, const std::string& axis) {
  for (const FoldedField& f : c.fields) {
    if (f.axis == axis) return f;
  }
  throw std::runtime_error("no field " + axis);
}

TEST(Compare, EqualTensorsPassWithRatioZero) {
  const ReferenceOutput r = ones({{"B", 1}, {"T", 70}, {"H", 2}, {"V", 3}});
  const OutputComparison c = compare_output(like(r, Dtype::bf16), r);
  EXPECT_TRUE(c.pass());
  EXPECT_EQ(c.ok, 420);
  EXPECT_EQ(c.max_ratio, 0);
  EXPECT_EQ(c.histogram[0], 420);
  EXPECT_EQ(c.worst.ratio, 0);
}

TEST(Compare, OneWrongElementIsFoundNamedAndFolded) {
  const ReferenceOutput r = ones({{"B", 1}, {"T", 70}, {"H", 2}, {"V", 3}});
  Tensor got = like(r, Dtype::bf16);
  const int64_t index[] = {0, 66, 1, 2};
  got.set(got.offset(index), 1.25);
  const OutputComparison c = compare_output(got, r);
  EXPECT_FALSE(c.pass());
  EXPECT_EQ(c.violation, 1);
  EXPECT_EQ(c.ok, 419);
  EXPECT_EQ(c.worst.element, "o[b=0,t=66,h=1,v=2]");
  EXPECT_EQ(c.worst.got, 1.25);
  EXPECT_EQ(c.worst.got_bits, 0x3fa0);
  EXPECT_EQ(c.worst.expected_bits, 0x3f80);
  EXPECT_EQ(c.worst.ratio, 2);
  EXPECT_EQ(c.worst.ulp, 32);  // 2^-7 at 1
  EXPECT_EQ(field(c, "t").max_ratio[66], 2);
  EXPECT_EQ(field(c, "t mod 64").max_ratio[2], 2);
  EXPECT_EQ(field(c, "t mod 16").max_ratio[2], 2);
  EXPECT_EQ(field(c, "h").max_ratio[1], 2);
  EXPECT_EQ(field(c, "v").max_ratio[2], 2);
  for (const FoldedField& f : c.fields) {
    EXPECT_EQ(std::accumulate(f.max_ratio.begin(), f.max_ratio.end(), 0.0), 2) << f.axis;
  }
  EXPECT_EQ(c.histogram[61], 1);  // log2(2) = 1
  EXPECT_EQ(std::accumulate(c.histogram.begin(), c.histogram.end(), int64_t{0}), 420);
}

/// Of five pieces: what is right, off, not finite or not judged lies in all of them.
TEST(Compare, IsTheSameInPiecesOnAnyNumberOfThreads) {
  const ReferenceOutput r = ones({{"B", 1}, {"T", 2000}, {"V", 150}});
  Tensor got = like(r, Dtype::fp32);
  std::vector<uint8_t> judged(r.mid.size(), 1);
  std::vector<double> ratios(2000);
  int64_t violations = 0, elements = 0, first_worst = -1;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double off = 0x1p-12 * static_cast<double>(i * 7919 % 601);
    got.set(i, 1 + off), judged[static_cast<size_t>(i)] = i % 11 != 0;
    if (i % 11 == 0) continue;
    ++elements, violations += off > 0.125;
    ratios[static_cast<size_t>(i / 150)] = std::max(ratios[static_cast<size_t>(i / 150)], 8 * off);
    if (off == 0x1p-12 * 600 && first_worst < 0) first_worst = i;
  }
  for (const int threads : {1, 3}) {
    const OutputComparison c = compare_output(got, r, &judged, 0, threads);
    EXPECT_EQ(c.elements, elements);
    EXPECT_EQ(c.violation, violations);
    EXPECT_EQ(c.ok + c.undecided, elements - violations);  // an error that is the bound is neither
    EXPECT_EQ(std::accumulate(c.histogram.begin(), c.histogram.end(), int64_t{0}), elements);
    EXPECT_EQ(c.max_ratio, 8 * 0x1p-12 * 600);
    EXPECT_EQ(c.worst.flat, first_worst);
    const std::vector<double>& halves = field(c, "t / 2").max_ratio;
    ASSERT_EQ(halves.size(), 1000u);
    for (size_t t = 0; t < halves.size(); ++t)
      EXPECT_EQ(halves[t], std::max(ratios[2 * t], ratios[2 * t + 1])) << t;
  }
}

TEST(Compare, EveryElementIsFoldedAtItsPlaceAlongEveryAxis) {
  for (const int64_t columns : {1, 3}) {
    const ReferenceOutput r = ones({{"B", 2}, {"T", 70}, {"V", columns}});
    Tensor got = like(r, Dtype::fp32);
    for (int64_t i = 0; i < got.size(); ++i) got.set(i, 1 + 0x1p-12 * static_cast<double>(i * 37 % 101));
    const OutputComparison c = compare_output(got, r);
    for (const FoldedField& f : c.fields) {
      std::vector<double> expected(f.max_ratio.size());
      for (int64_t i = 0; i < got.size(); ++i) {
        const std::vector<int64_t> at = got.index(i);
        const int64_t along = f.axis == "b" ? at[0] : f.axis == "v" ? at[2] : at[1];
        double& most = expected[static_cast<size_t>(along) % expected.size()];
        most = std::max(most, std::fabs(got.value(i) - 1) / 0.125);
      }
      EXPECT_EQ(f.max_ratio, expected) << f.axis << " of " << columns;
    }
  }
}

/// With bounds, radii, companions and errors of many sizes; `faults` of them anything else.
std::pair<ReferenceOutput, Tensor> drawn(Dtype dtype, std::vector<Axis> axes, int faults, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto size = [&](int least, int most) {
    return std::ldexp(std::uniform_real_distribution<double>(1, 2)(random),
                      std::uniform_int_distribution<int>(least, most)(random));
  };
  ReferenceOutput r = ones(std::move(axes));
  r.roundoff = unit_roundoff(dtype), r.underflow.resize(r.mid.size());
  Tensor got = like(r, dtype);
  for (size_t i = 0; i < r.mid.size(); ++i) {
    const bool exact = random() % 9 == 0;
    r.mid[i] = random() % 50 == 0 ? 0 : size(-6, 3) * (random() % 2 ? 1 : -1);
    got.set(static_cast<int64_t>(i), r.mid[i] * (1 + (exact ? 0 : size(-14, -5))));
    if (exact) r.mid[i] = got.value(static_cast<int64_t>(i));
    r.bound[i] = exact && random() % 2
                     ? 0
                     : 16 * std::fabs(got.value(static_cast<int64_t>(i)) - r.mid[i]) + size(-20, -3);
    r.rad[i] = r.bound[i] * (exact ? 0 : size(-40, -12));
    r.companion[i] = random() % 20 == 0 ? 0 : size(-4, 4), r.underflow[i] = random() % 3 ? size(-60, -10) : 0;
  }
  const double odd[] = {HUGE_VAL, NAN, 0, -1, 1e300, 0x1p-1074};
  for (int f = 0; f < faults; ++f) {
    const size_t i = random() % r.mid.size();
    std::vector<double>* const of[] = {&r.mid, &r.rad, &r.bound, &r.companion, &r.underflow};
    const size_t which = random() % 7;
    if (which < 5)
      (*of[which])[i] = odd[random() % 6];
    else if (which < 6)
      r.rad[i] = r.bound[i] / 4;  // too wide to decide
    else
      got.set(static_cast<int64_t>(i), odd[random() % 6]);
  }
  return {r, got};
}

TEST(Compare, ManyAtOnceAreJudgedAsOneByOne) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16})
    for (const int faults : {0, 40, 400}) {
      const auto [r, got] = drawn(dtype, {{"B", 1}, {"T", 97}, {"V", 34}}, faults, 17u + faults);
      const std::vector<uint8_t> all(r.mid.size(), 1);  // whoever asks for some is given them one by one
      const OutputComparison at_once = compare_output(got, r), one_by_one = compare_output(got, r, &all);
      const auto counted = [](const OutputComparison& c) {
        return std::tuple(c.elements, c.ok, c.violation, c.nonfinite, c.wrong_class, c.undecided,
                          c.worst.flat, c.max_ratio, c.max_tightness, c.max_relative_bound, c.max_enclosure,
                          c.histogram);
      };
      EXPECT_EQ(counted(at_once), counted(one_by_one)) << format(dtype).name << ", " << faults;
      EXPECT_EQ(at_once.verdicts, one_by_one.verdicts);
      for (const FoldedField& f : at_once.fields)
        EXPECT_EQ(f.max_ratio, field(one_by_one, f.axis).max_ratio) << f.axis;
      EXPECT_EQ(at_once.ok<at_once.elements, faults> 0);
      EXPECT_GT(at_once.max_tightness, 0);
      EXPECT_GT(at_once.max_relative_bound, 0);
    }
}

TEST(Compare, AWrongClassIsWorseThanAnyRatioAndTheFirstOneIsShown) {
  const ReferenceOutput r = ones({{"T", 5}});
  Tensor got = like(r, Dtype::fp32);
  got.set(0, 1e30), got.set(2, NAN), got.set(3, INFINITY);
  const OutputComparison c = compare_output(got, r);
  EXPECT_EQ(c.worst.element, "o[t=2]");
  EXPECT_EQ(c.nonfinite, 2);
  EXPECT_EQ(c.violation, 1);
  EXPECT_EQ(c.max_ratio, INFINITY);
  EXPECT_EQ(c.verdicts[2], ElementVerdict::nonfinite);
}

TEST(Compare, TightnessLeavesOutTheRoundingOfTheOutput) {
  // Kernel value 1 + 3/64 stored as bf16 (unit 2^-7): error before rounding at least 3/64 - 2^-8; the bound
  // before rounding is (1/8 - 2^-8 |1| - tiny) / (1 + 2^-8).
  ReferenceOutput r = ones({{"T", 1}});
  Tensor got = like(r, Dtype::bf16);
  got.set(0, 1 + 3.0 / 64);
  r.roundoff = 0x1p-8;
  OutputComparison c = compare_output(got, r);
  const double bound = (0.125 - 0x1p-8) / (1 + 0x1p-8);
  EXPECT_DOUBLE_EQ(c.max_tightness, (3.0 / 64 - 0x1p-8) / bound);
  EXPECT_DOUBLE_EQ(c.max_relative_bound, bound / 2);
  EXPECT_DOUBLE_EQ(c.max_ratio, 3.0 / 8);
  EXPECT_EQ(c.max_enclosure, 0x1p-27);
  // fp32 outputs are the accumulators themselves.
  Tensor wide = like(r, Dtype::fp32);
  wide.set(0, 1 + 3.0 / 64);
  c = compare_output(wide, r);
  EXPECT_EQ(c.max_tightness, c.max_ratio);
}

TEST(Compare, TheAbsolutePartOfTheBoundIsNoPartOfTheRelativeOne) {
  ReferenceOutput r = ones({{"T", 2}});
  r.underflow = {0.0625, 0.0625};
  r.companion = {2, 0x1p-30};  // beside the second one underflow is everything
  r.undecided = "the interval stayed wide at 4096 bits";
  const OutputComparison c = compare_output(like(r, Dtype::fp32), r);
  EXPECT_EQ(c.max_relative_bound, (0.125 - 0.0625) / 2);
  EXPECT_EQ(c.undecided_reason, r.undecided);
}

/// Where the formula decided: a value near the exact one that only lacks a bound is taken, all else stays
/// open.
TEST(Compare, WhereOnlyTheBoundIsInfiniteNearValuesMayBeTaken) {
  ReferenceOutput r = ones({{"T", 6}});
  r.bound = {0.125, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  r.mid[3] = HUGE_VAL, r.rad[4] = HUGE_VAL;
  Tensor got = like(r, Dtype::fp16);
  got.set(1, 1.125), got.set(2, NAN), got.set(3, 1), got.set(4, 1), got.set(5, 0);
  OutputComparison c = compare_output(got, r);
  EXPECT_EQ(c.ok, 1);
  EXPECT_EQ(c.undecided, 5);
  EXPECT_EQ(c.by_formula, 0);
  c = compare_output(got, r, nullptr, 0.25);
  EXPECT_EQ(c.ok, 2);
  EXPECT_EQ(c.by_formula, 1);
  EXPECT_EQ(c.undecided, 4);
  EXPECT_EQ(c.verdicts[1], ElementVerdict::ok);
}

TEST(Compare, WhatTheFormulaDecidedHasNoReasonToBeOpen) {
  ReferenceOutput r = ones({{"T", 2}});
  r.bound[1] = HUGE_VAL, r.undecided = "no bound is finite there";
  const Tensor got = like(r, Dtype::fp16);
  EXPECT_EQ(compare_output(got, r).undecided_reason, r.undecided);
  EXPECT_EQ(compare_output(got, r, nullptr, 0.25).undecided_reason, "");
}

TEST(Compare, LongAxesAreFoldedIntoBlocks) {
  const ReferenceOutput r = ones({{"T", 5000}});
  Tensor got = like(r, Dtype::fp32);
  got.set(4999, 2);
  const OutputComparison c = compare_output(got, r);
  const FoldedField& f = field(c, "t / 5");
  EXPECT_EQ(f.max_ratio.size(), 1000);
  EXPECT_EQ(f.max_ratio.back(), 8);
}

TEST(Compare, EmptyOutputsPass) {
  const ReferenceOutput r = ones({{"T", 0}, {"V", 3}});
  const OutputComparison c = compare_output(like(r, Dtype::fp32), r);
  EXPECT_TRUE(c.pass());
  EXPECT_EQ(c.elements, 0);
}

TEST(Compare, DifferingBitsAreCountedAndAllNaNAreEqual) {
  Tensor a("o", Dtype::fp32, {{"T", 4}}), b = a;
  a.set_bits(0, 0x7fc00000), b.set_bits(0, 0xffffffff);
  EXPECT_EQ(differing_elements(a, b), 0);
  a.set_bits(1, 0x80000000);
  a.set(3, 1), b.set(3, std::nextafter(1.f, 2.f));
  int64_t first = -1;
  EXPECT_EQ(differing_elements(a, b, &first), 2) << "-0 and +0 differ between runs";
  EXPECT_EQ(first, 1);
}

}  // namespace
}  // namespace assay
