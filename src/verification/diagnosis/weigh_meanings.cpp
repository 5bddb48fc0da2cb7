// Every mutated meaning is tried on the failing run, variant by variant while there is time; those that fit
// are described, the best first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/counted_work.h"
#include "src/verification/diagnosis/evaluation_work.h"
#include "src/verification/diagnosis/meaning.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

using namespace thresholds;
constexpr size_t kMostNamed = 6;  // lines of a report

struct Best {
  const Meaning* meaning = nullptr;
  std::string text, input;
  Fit fit;
  double score = 0;
  double bits = 0;  ///< of the fit and the variant
  Numbers numbers;
};

std::string ratio_text(double ratio) {
  return ratio > 1e4 ? fmt::format("{:.2g}", ratio) : fmt::format("{:.4g}", ratio);
}

std::string how_well(const Fit& fit, bool on_reals) {
  if (!on_reals)
    return fmt::format(
        "so computed, {} of {} wrong elements are within their bound; the largest error/bound falls from {} "
        "to {}",
        fit.explained, fit.wrong, ratio_text(fit.before), ratio_text(fit.after));
  return fmt::format(
      "on real numbers, rounding out of the way, {} of {} wrong elements are right if so computed; the "
      "largest difference/slack falls from {} to {}",
      fit.explained, fit.wrong, ratio_text(fit.before), ratio_text(fit.after));
}

Diagnosis describe(const Best& best, bool on_reals) {
  const Fit& fit = best.fit;
  Diagnosis d;
  d.cause = best.meaning->name;
  d.explanation = fmt::format("{}: {}", best.text, best.meaning->advice);
  d.score = best.score;
  d.evidence.push_back(how_well(fit, on_reals));
  if (fit.refuting > 0)
    d.against.push_back(fmt::format(
        "{} elements are wrong on real numbers and stay so: it is not all of it, or something like it",
        fit.refuting));
  if (!fit.partial.empty()) d.against.push_back(fmt::format("it explains {}", fit.partial));
  if (fit.unsaid > 0)
    d.against.push_back(fmt::format("it says nothing of {} more in other outputs", fit.unsaid));
  if (fit.against > 0)
    d.against.push_back(fmt::format("{} right elements of these outputs would be wrong", fit.against));
  if (fit.against_elsewhere > 0)
    d.against.push_back(
        fmt::format("{} elements of outputs without a fault would be wrong", fit.against_elsewhere));
  if (fit.bits < kLittle)
    d.against.push_back(fmt::format("it rests on little: {:.0f} bits of coincidence would do", fit.bits));
  return d;
}

/// Keeps the better one.
void weigh_fit(const Fit& fit, const Variant& variant, double share, double choices, const std::string& more,
               Best& best) {
  // A number that makes one element right is a choice among as many as one element proves.
  if (variant.numbers)
    choices *= std::exp2(kMostBitsOfElement * static_cast<double>(variant.numbers->size()));
  double score = share * best.meaning->prior * score_of(fit, variant, choices);
  if (fit.refuting > 0) score = std::min(score, kRefuted);
  if (!(score > best.score)) return;
  best.text = variant.text + (variant.fitted ? *variant.fitted : "") + more;
  best.input = variant.taken.empty() ? variant.input : variant.taken;
  best.fit = fit, best.score = score, best.bits = fit.bits + variant.bits;
  best.numbers = variant.numbers ? *variant.numbers : Numbers{};
}

void try_variant(const FailingRun& run, const Variant& variant, double alike, Best& best) {
  count_evaluation(*run.op, run.problem, run.forward, run.backward);
  const std::optional<Prediction> prediction = variant.predict();
  if (!prediction) return;
  const Fit fit = fit_of(run, *prediction);
  const double choices = variant.choices * alike;
  weigh_fit(fit, variant, 1, choices, "", best);
  const bool limited = fit.against > 0 && fit.wrong > 0 && fit.explained == fit.wrong &&
                       fit.bits > kSurelyNoChance + std::log2(choices * kBlocks);
  std::string where;
  if (!limited) return;
  if (const auto in_block = limited_to_wrong_block(run, *prediction, where))
    weigh_fit(fit_of(run, *in_block), variant, kLimited, choices * kBlocks, ", in " + where + " only", best);
}

/// The same change to some channels of the input alone; none where the input has few.
std::vector<Variant> limited_to_channels(const FailingRun& run, const Variant& variant) {
  constexpr int64_t kFew = 16;
  std::vector<Variant> list;
  if (!variant.change || variant.sweep) return list;
  const Tensor& x = run.inputs().at(variant.input);
  const std::string letter = x.axes.empty() ? "" : x.axes.back().name;
  const int64_t size = x.axes.empty() ? 0 : x.axes.back().size;
  if (size <= kFew || letter == "T" || letter == "H" || letter == "B") return list;
  for (const int64_t tile : {16, 32, 64, 128})
    for (const bool first : {true, false}) {
      if (tile >= size) continue;
      Variant limited = variant;
      limited.text += fmt::format(", in channels {}",
                                  first ? fmt::format("below {}", tile) : fmt::format("from {} on", tile));
      limited.predict = [&run, input = variant.input, change = variant.change, tile, first, size] {
        const Tensor& given = run.inputs().at(input);
        const Tensor changed = change(given);
        return evaluate_with(run, input, mapped(given, [&](double value, int64_t flat) {
                               return (flat % size < tile) == first ? changed.value(flat) : value;
                             }));
      };
      limited.choices *= kBlocks, limited.sweep = true;
      list.push_back(std::move(limited));
    }
  return list;
}

/// Some meaning explains everything, and not by chance: single tokens need not be tried as well.
bool is_explained(const std::vector<Best>& bests) {
  return std::any_of(bests.begin(), bests.end(),
                     [](const Best& b) { return b.score >= kWholly && b.fit.bits >= kSurelyNoChance; });
}

}  // namespace

const std::vector<Meaning>& meanings() {
  static const std::vector<Meaning> all = [] {
    std::vector<Meaning> list;
    for (const auto table : {decay_meanings, state_meanings, token_meanings, scale_meanings, removal_meanings,
                             operand_meanings, gradient_meanings, term_meanings, output_meanings})
      for (Meaning& m : table()) list.push_back(std::move(m));
    return list;
  }();
  return all;
}

Weighed weigh_meanings(const FailingRun& given, double seconds, WrongBy by) {
  Weighed weighed;
  weighed.by = by;
  if (given.wrong().empty()) return weighed;
  const double start = counted_seconds();
  const FailingRun run = with_explicit_gates(given);
  std::vector<Best> bests;
  std::vector<std::vector<Variant>> variants;
  for (const Meaning& meaning : meanings()) {
    if (by == (meaning.rounding ? WrongBy::formula : WrongBy::rounding)) continue;
    bests.push_back({.meaning = &meaning});
    std::vector<Variant>& list = variants.emplace_back(meaning.variants(run));
    for (size_t i = 0, count = list.size(); i < count; ++i)
      for (Variant& limited : limited_to_channels(run, list[i])) list.push_back(std::move(limited));
  }
  size_t most = 0;
  for (const std::vector<Variant>& list : variants) most = std::max(most, list.size());
  for (const bool sweep : {false, true}) {
    if (sweep && is_explained(bests)) break;
    // In turn: where time runs out every meaning has had its likeliest variants tried.
    for (size_t i = 0; i < most; ++i)
      for (size_t m = 0; m < bests.size(); ++m) {
        if (i >= variants[m].size() || variants[m][i].sweep != sweep) continue;
        if (counted_seconds() - start > seconds) {
          ++weighed.left;
          continue;
        }
        ++weighed.tried;
        try_variant(run, variants[m][i], static_cast<double>(variants[m].size()), bests[m]);
      }
  }
  std::erase_if(bests, [](const Best& b) { return b.score < kWorthSaying; });
  // Of equal scores the earlier row stands first: it is the more specific one.
  std::stable_sort(bests.begin(), bests.end(),
                   [](const Best& a, const Best& b) { return a.score > b.score; });
  if (!bests.empty()) weighed.bits = bests.front().fit.bits;
  for (const Best& best : bests)
    if (best.bits < 1) weighed.by_nothing.insert(std::string(best.meaning->name));
  for (const Best& best : bests)
    if (best.meaning->rounding && best.bits < kLittle)
      weighed.by_little.insert(std::string(best.meaning->name));
  for (const Best& best : bests)
    if (!best.numbers.empty()) weighed.by_numbers[std::string(best.meaning->name)] = best.numbers;
  for (size_t i = 0; i < std::min(bests.size(), kMostNamed); ++i) {
    weighed.fitting.push_back(describe(bests[i], !run.on_reals.empty()));
    if (!bests[i].input.empty()) weighed.about[weighed.fitting.back().cause] = bests[i].input;
  }
  return weighed;
}

}  // namespace assay
