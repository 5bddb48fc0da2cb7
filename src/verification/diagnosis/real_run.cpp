#include "src/verification/diagnosis/real_run.h"

#include <algorithm>
#include <cmath>

#include "src/verification/compare/formula.h"

namespace assay {
namespace {

/// Of the absolute companion: what tables of meanings compute in doubles beside the reference's own radius.
constexpr double kOfMeanings = 0x1p-40;

/// An element's exact value against the reference.
struct OnReals {
  bool known = false, wrong = false;
  double difference = 0, allowed = 0;
};

OnReals on_reals(const Tensor& got, const vm::ExactOutput& exact, const ReferenceOutput& right, double size,
                 size_t i) {
  OnReals e;
  e.allowed = allowed_difference(got, exact, right, size, i);
  if (!right.companion.empty()) e.allowed += kOfMeanings * right.companion[i];
  e.known = std::isfinite(exact.value[i]) && std::isfinite(e.allowed) && std::isfinite(right.mid[i]);
  if (!e.known) return e;
  e.difference = std::fabs(exact.value[i] - right.mid[i]);
  e.wrong = e.difference > e.allowed;
  return e;
}

bool has_fault(const OutputComparison& o) {
  return o.violation + o.wrong_class > 0;
}

}  // namespace

/// What an output with wrong values is wrong by.
WrongBy RealRun::judge(const OutputComparison& o, const vm::ExactOutput* exact) {
  const Tensor& got = outputs_.at(o.name);
  const ReferenceOutput& right = *run_.expected(o.name);
  if (!exact || exact->value.size() != right.mid.size()) return WrongBy::unknown;
  const double size = size_of(right);
  int64_t wrong = 0, by_formula = 0, by_rounding = 0;
  for (size_t i = 0; i < right.mid.size(); ++i) {
    if (o.verdicts[i] != ElementVerdict::violation && o.verdicts[i] != ElementVerdict::wrong_class) continue;
    ++wrong;
    const OnReals e = on_reals(got, *exact, right, size, i);
    by_rounding += e.known && !e.wrong;
    const double error = std::fabs(got.value(static_cast<int64_t>(i)) - right.mid[i]);
    by_formula += e.known && e.wrong && (std::isinf(error) || 2 * e.difference >= error);
  }
  if (2 * by_formula > wrong) return WrongBy::formula;
  return by_rounding == wrong ? WrongBy::rounding : WrongBy::unknown;
}

/// The output as it is on real numbers.
void RealRun::put(OutputComparison& o, const vm::ExactOutput& exact) {
  const Tensor& got = run_.outputs->at(o.name);
  const auto at = std::find_if(reference_.outputs.begin(), reference_.outputs.end(),
                               [&](const ReferenceOutput& r) { return r.name == o.name; });
  const ReferenceOutput right = *at;
  const double size = size_of(right);
  Tensor values(o.name, Dtype::fp64, got.axes);
  o.violation = o.wrong_class = o.nonfinite = o.undecided = o.ok = 0;
  for (size_t i = 0; i < right.mid.size(); ++i) {
    const OnReals e = on_reals(got, exact, right, size, i);
    o.verdicts[i] = !e.known  ? ElementVerdict::undecided
                    : e.wrong ? ElementVerdict::violation
                              : ElementVerdict::ok;
    o.undecided += !e.known, o.violation += e.wrong, o.ok += e.known && !e.wrong;
    values.set(static_cast<int64_t>(i), e.known ? exact.value[i] : right.mid[i]);
    at->bound[i] = e.known ? e.allowed - right.rad[i] : 0;
  }
  outputs_[o.name] = std::move(values);
  run_.on_reals.insert(o.name);
}

RealRun::RealRun(const FailingRun& rounded, const vm::ExactRun& exact)
    : run_(rounded), outputs_(*rounded.outputs), reference_(*rounded.reference), judged_(*rounded.judged) {
  if (exact.branches_turned > 0) return;  // on real numbers the program goes another way
  bool formula = false, all_rounding = true;
  for (OutputComparison& o : judged_) {
    if (!run_.expected(o.name) || !outputs_.count(o.name)) continue;
    const auto found = exact.outputs.find(o.name);
    const vm::ExactOutput* values = found == exact.outputs.end() ? nullptr : &found->second;
    if (!has_fault(o)) {
      if (values && values->value.size() == o.verdicts.size()) put(o, *values), formula |= o.violation > 0;
      continue;
    }
    const WrongBy by = judge(o, values);
    formula |= by == WrongBy::formula, all_rounding &= by == WrongBy::rounding;
    if (by == WrongBy::formula) put(o, *values);
    if (by != WrongBy::rounding) continue;
    o.undecided += o.violation + o.wrong_class;
    o.violation = o.wrong_class = 0;
    std::fill(o.verdicts.begin(), o.verdicts.end(), ElementVerdict::undecided);
  }
  wrong_by_ = formula ? WrongBy::formula : all_rounding ? WrongBy::rounding : WrongBy::unknown;
  run_.outputs = &outputs_, run_.reference = &reference_, run_.judged = &judged_;
  run_.find_directions();
}

}  // namespace assay
