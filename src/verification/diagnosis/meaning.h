// Mutated meanings: what a kernel may have computed instead of its operator. Each row of the tables in
// src/verification/diagnosis/meanings/ names a defect and proposes ways in which it may show; a way is
// evaluated on the failing case and compared with what the kernel gave.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/result/diagnosis.h"
#include "src/verification/diagnosis/prediction.h"
#include "src/verification/diagnosis/real_run.h"

namespace assay {

/// Numbers that a variant takes from the run, by what they multiply ("dk", or empty): another run has to give
/// the same.
using Numbers = std::map<std::string, double>;

/// One way in which a defect may show.
struct Variant {
  std::string text;  ///< "the gate of head 0 for every head"
  std::function<std::optional<Prediction>()> predict;
  /// How many such variants could have been tried in its place: a fit among many may be chance.
  double choices = 1;
  double bits = 0;  ///< surprise beyond what the fit shows (values that happen to lie in a narrower format)
  /// Roundings are imitated, not repeated: what counts is how much smaller the errors become.
  bool approximate = false;
  /// What `predict` found out by fitting, appended to the text.
  std::shared_ptr<std::string> fitted;
  std::shared_ptr<Numbers> numbers;  ///< of that, what has no meaning of its own
  /// Where it changes one input: that, for changes to a block of its channels.
  std::string input = {};
  std::function<Tensor(const Tensor&)> change = {};
  std::string taken = {};  ///< where another input is read in its place, that
  /// One of many alike (each token in turn): tried after all others, and only where none of them fits well.
  bool sweep = false;
};

struct Meaning {
  std::string_view name;     ///< "gate-of-another-head": the cause
  std::string_view summary;  ///< one line for `assay list causes`
  std::string_view advice;   ///< what to look at
  std::function<std::vector<Variant>(const FailingRun&)> variants;
  /// Of a meaning that says little: a more specific one that fits as well goes before it.
  double prior = 1;
  bool grows = false;     ///< so computed, exponentials have arguments above 0
  bool rounding = false;  ///< the formula is right, and more is rounded than should be
};

/// All tables, one after another: the most specific first.
const std::vector<Meaning>& meanings();

std::vector<Meaning> decay_meanings();
std::vector<Meaning> state_meanings();
std::vector<Meaning> token_meanings();
std::vector<Meaning> operand_meanings();
std::vector<Meaning> removal_meanings();
std::vector<Meaning> scale_meanings();
std::vector<Meaning> gradient_meanings();
std::vector<Meaning> term_meanings();
std::vector<Meaning> output_meanings();

/// How well a prediction agrees with what the kernel gave.
struct Fit {
  int64_t wrong = 0;      ///< elements beyond the reference's bound
  int64_t explained = 0;  ///< of them: within the prediction's
  int64_t refuting = 0;   ///< predicted otherwise in outputs on real numbers: no rounding excuses them
  int64_t unsaid = 0;     ///< beyond it in outputs of which the prediction says nothing: every element NaN
  /// Elements within the reference's bound that the prediction says are elsewhere: in outputs with wrong
  /// elements, and in outputs without.
  int64_t against = 0, against_elsewhere = 0;
  /// Surprise: sum over the explained elements of log2 of (distance to the reference / allowed distance).
  double bits = 0;
  double gain = 1;  ///< root mean square error of the wrong elements: of the reference / of the prediction
  double before = 0,
         after = 0;     ///< largest error / bound of the wrong elements: of the reference, of the prediction
  std::string partial;  ///< outputs that are explained where others are not: "dk 12 of 12, dv 0 of 64"
};
Fit fit_of(const FailingRun&, const Prediction&);
/// The prediction in the blocks of channels and heads that hold each output's wrong elements, the reference
/// elsewhere; none where no output is wrong in a block only. `text`: which.
std::optional<Prediction> limited_to_wrong_block(const FailingRun&, const Prediction&, std::string& text);
/// 0 to 1: 1 where every wrong element is explained, none speaks against it, and it cannot be chance.
double score_of(const Fit&, const Variant&, double choices);

/// The meanings that reproduce what the kernel gave, best first, at most so many seconds spent. Those are
/// tried that may explain what it is wrong by; of a formula, wrong on real numbers, one that leaves a wrong
/// element there open is refuted. `tried`: variants evaluated; `left`: left out for want of time.
struct Weighed {
  std::vector<Diagnosis> fitting;
  WrongBy by = WrongBy::unknown;
  int64_t tried = 0, left = 0;
  double bits = 0;                            ///< surprise (Fit::bits) of the best
  std::set<std::string> by_little;            ///< roundings whose fit may well be chance
  std::set<std::string> by_nothing;           ///< causes whose fit is no surprise at all
  std::map<std::string, Numbers> by_numbers;  ///< causes that fit by numbers which this run gave
  std::map<std::string, std::string> about;   ///< of causes that change one input: its name
};
Weighed weigh_meanings(const FailingRun&, double seconds, WrongBy = WrongBy::unknown);

}  // namespace assay
