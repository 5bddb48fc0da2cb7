// How well the outputs of a mutated meaning agree with what the kernel gave (Fit): which wrong elements they
// explain and how surprising that is, what speaks against it, and what it says nothing of.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/meaning.h"
#include "src/verification/diagnosis/schedule.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

using namespace thresholds;

bool is_wrong(ElementVerdict v) {
  return v == ElementVerdict::violation || v == ElementVerdict::wrong_class;
}

/// Within the bound; an infinity where the prediction is beyond every number.
bool agrees(double got, double mid, double bound) {
  if (std::isinf(got)) return std::isinf(mid) ? got == mid : std::fabs(mid) > 3e38 && got * mid > 0;
  return std::fabs(got - mid) <= bound * (1 + 0x1p-40);
}

struct OutputFit {
  std::string name;
  int64_t wrong = 0, explained = 0, against = 0;
  int64_t refuting = 0;                          ///< predicted otherwise
  double bits = 0, before = 0, after = 0;        ///< as in Fit
  double squares_before = 0, squares_after = 0;  ///< of errors / bound

  bool is_explained() const {
    return static_cast<double>(explained) >= kMostOfThem * static_cast<double>(wrong);
  }
};

/// The gradient of what acts on a state: a gate, or the factors of a delta rule. It is a product of the state
/// and of the state's gradient; that of what is only written or read is made of one of them.
bool is_mixed(const FailingRun& run, const std::string& output) {
  if (!output.starts_with("d") || !is_schedulable(run)) return false;
  const ArgumentSpec* of = run.argument(output.substr(1));
  if (!of) return output == "dg_gamma";
  const bool written_or_read =
      of->name == "q" || of->name == "r" || of->name == "k" || of->name == "v" || of->name == "x";
  return of->role != Role::state && !written_or_read;
}

/// Where only one of the two passes is mutated, the meaning explains what is made of that one, and leaves the
/// products open.
bool is_left_open(const FailingRun& run, const std::vector<OutputFit>& fits, const OutputFit& f) {
  if (!is_mixed(run, f.name) || f.wrong == 0 || f.is_explained()) return false;
  int64_t others = 0;
  for (const OutputFit& other : fits) {
    if (is_mixed(run, other.name) || other.wrong == 0) continue;
    others += other.wrong;
    if (!other.is_explained()) return false;
  }
  return others > 0;
}

OutputFit fit_output(const OutputComparison& judged, const Tensor& got, const ReferenceOutput& expected,
                     const PredictedOutput& predicted, bool on_reals) {
  OutputFit f;
  f.name = judged.name;
  for (int64_t flat = 0; flat < got.size(); ++flat) {
    const auto i = static_cast<size_t>(flat);
    const double value = got.value(flat), mid = predicted.mid[i],
                 bound = predicted.bound[i] + (on_reals ? expected.bound[i] : 0);
    const bool agreed = agrees(value, mid, bound);
    if (judged.verdicts[i] == ElementVerdict::ok) {
      f.against += !agreed && !std::isnan(mid);
      continue;
    }
    if (!is_wrong(judged.verdicts[i])) continue;
    ++f.wrong;
    const double distance = std::fabs(value - expected.mid[i]);
    f.before = std::max(f.before, distance / expected.bound[i]);
    const double unit = std::max(expected.bound[i], 1e-300);
    if (!std::isnan(mid)) f.squares_after += std::pow((value - mid) / unit, 2);
    if (!std::isnan(mid)) f.squares_before += std::pow((value - expected.mid[i]) / unit, 2);
    if (!std::isnan(mid)) f.after = std::max(f.after, std::fabs(value - mid) / bound);
    // A bound so wide that the reference would lie within it too explains nothing; a meaning that leaves the
    // domain of its bound (a growing decay) has to come far nearer than the reference instead.
    const double off = std::fabs(value - mid);
    const bool telling = bound <= distance;
    if (telling ? !agreed : !(off <= distance * kNearer)) {
      f.refuting += on_reals && !std::isnan(mid);
      continue;
    }
    ++f.explained;
    if (!telling && off > distance * kFarNearer) continue;  // it agrees, and shows nothing
    const double ratio = distance / std::max(telling ? bound : off, 1e-300);
    f.bits +=
        std::isfinite(ratio) ? std::clamp(std::log2(ratio), 0.0, kMostBitsOfElement) : kMostBitsOfElement;
  }
  return f;
}

void add_up(const FailingRun& run, const std::vector<OutputFit>& fits, Fit& fit) {
  std::string parts;
  bool partial = false;
  double before = 0, after = 0;
  for (const OutputFit& f : fits) {
    if (is_left_open(run, fits, f)) {
      fit.unsaid += f.wrong;
      continue;
    }
    fit.wrong += f.wrong, fit.explained += f.explained, fit.bits += f.bits;
    fit.refuting += f.refuting;
    fit.before = std::max(fit.before, f.before), fit.after = std::max(fit.after, f.after);
    before += f.squares_before, after += f.squares_after;
    (f.wrong > 0 ? fit.against : fit.against_elsewhere) += f.against;
    if (f.wrong == 0) continue;
    parts += fmt::format("{}{} {} of {}", parts.empty() ? "" : ", ", f.name, f.explained, f.wrong);
    partial = partial || f.explained < f.wrong;
  }
  if (partial) fit.partial = parts;
  if (after > 0) fit.gain = std::sqrt(before / after);
}

}  // namespace

Fit fit_of(const FailingRun& run, const Prediction& prediction) {
  Fit fit;
  std::vector<OutputFit> fits;
  for (const OutputComparison& judged : *run.judged) {
    const auto got = run.outputs->find(judged.name);
    const auto predicted = prediction.find(judged.name);
    const ReferenceOutput* expected = run.expected(judged.name);
    const int64_t wrong = judged.violation + judged.wrong_class;
    if (got == run.outputs->end() || !expected) continue;
    if (predicted == prediction.end() || predicted->second.mid.size() != judged.verdicts.size()) {
      fit.wrong += wrong;
      continue;
    }
    const std::vector<double>& mid = predicted->second.mid;
    if (wrong > 0 && std::all_of(mid.begin(), mid.end(), [](double x) { return std::isnan(x); })) {
      fit.unsaid += wrong;
      continue;
    }
    fits.push_back(
        fit_output(judged, got->second, *expected, predicted->second, run.is_on_reals(judged.name)));
  }
  add_up(run, fits, fit);
  return fit;
}

double score_of(const Fit& fit, const Variant& variant, double choices) {
  if (fit.wrong == 0 || fit.explained == 0) return 0;
  const double share = static_cast<double>(fit.explained) / static_cast<double>(fit.wrong);
  const double against = static_cast<double>(fit.against) / static_cast<double>(fit.against + fit.explained);
  double score = share >= 1             ? kEveryElement
                 : share >= kMostOfThem ? kMostElements
                                        : kShareOfElements * share * share;
  if (variant.approximate)
    score = std::max(score, fit.gain >= 4 ? kFallsFourfold : fit.gain >= 2 ? kFallsTwofold : 0.0);
  score *= 1 - kAgainst * against - (fit.against_elsewhere > 0 ? kAgainstElsewhere : 0);
  if (fit.unsaid > 0) score *= kUnsaid;
  // That n errors all fall g times has the chance g^-n, if they fall by accident.
  const double bits =
      variant.approximate
          ? std::max(fit.bits, static_cast<double>(fit.wrong) * std::log2(std::max(fit.gain, 1.0)))
          : fit.bits;
  const double spare = bits + variant.bits - std::log2(std::max(choices, 1.0)) - kBitsNeeded;
  if (spare < 0) score *= std::max(kLeastShare, 1 + kPerMissingBit * spare);
  return score;
}

}  // namespace assay
