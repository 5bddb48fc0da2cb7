// Meanings of one term of a sum that enters with another weight: with the other sign, twice, by half, times
// the scale.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "src/verification/diagnosis/meanings/normaliser.h"
#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

/// Weights are fitted; one that means nothing costs what Numbers do besides.
constexpr double kWeights = 16;
constexpr double kClose = 0x1p-9, kLargest = 64;
/// What the bounds of a term's factors leave out.
constexpr double kRounding = 0x1p-20;

struct Term {
  std::string text;
  std::function<std::optional<Prediction>()> value;  ///< what it adds to the outputs that have it
  bool may_miss = false;                             ///< no other meaning says that it is left out
};

std::optional<Prediction> missing_from(const FailingRun& run, const std::optional<Prediction>& without) {
  if (!without) return std::nullopt;
  return combine(1, reference_prediction(run), -1, *without);
}

/// What the cotangent of o gives the gradients through the numerator of a quotient.
std::optional<Prediction> through_numerator(const FailingRun& run) {
  FailingRun of_o = run;
  TensorMap inputs = run.inputs();
  for (const std::string& name : run.cotangents())
    if (token_width(inputs.at(name)) == 0) inputs[name] = zeros(inputs.at(name));
  of_o.owned = std::make_shared<const TensorMap>(std::move(inputs));
  of_o.problem.inputs = of_o.owned.get();
  std::optional<Prediction> p = evaluate_with(of_o, of_o.inputs());
  if (!p) return p;
  for (const DivisorPart& part : divisor_gradients(of_o, false))
    for (const auto& [name, less] : part.part)
      for (size_t i = 0; i < less.mid.size(); ++i) p->at(name).mid[i] -= less.mid[i];
  p->erase("dz0");  // of the divisor alone
  return p;
}

/// What passes from tokens to later ones of the same block of C, and nothing else.
std::optional<Prediction> within_blocks(const FailingRun& run, int64_t C) {
  Schedule blocks = schedule_of(run, [C](const TokenPlace& p) {
    Events e{{p.row, p.row, p.row}};
    if (p.t % C == 0) e.insert(e.begin(), Event{-1, -1, -1, true});
    return e;
  });
  blocks.initial_state = blocks.final_state = false;
  return evaluate_schedule(run, blocks);
}

/// A chunk's pairs of tokens are summed block by block: on the diagonal, and between blocks.
void append_pairs_of_sub_chunks(const FailingRun& run, std::vector<Term>& terms) {
  if (!can_reset(run) || !is_linear(run)) return;
  int64_t longest = 0;
  for (const auto& [first, length] : run.spans()) longest = std::max(longest, length);
  for (const auto& [C, part] :
       {std::pair<int64_t, int64_t>{64, 16}, {64, 32}, {32, 16}, {64, 8}, {128, 64}}) {
    if (longest <= part) continue;
    terms.push_back({fmt::format("what passes between parts of {} of one chunk of {}", part, C),
                     [&run, C = C, part = part]() -> std::optional<Prediction> {
                       const auto chunk = within_blocks(run, C), parts = within_blocks(run, part);
                       if (!chunk || !parts) return std::nullopt;
                       return combine(1, *chunk, -1, *parts);
                     },
                     true});
  }
  for (const int64_t part : {16, 32, 64})
    if (longest > part)
      terms.push_back({fmt::format("what passes inside parts of {}", part),
                       [&run, part] { return within_blocks(run, part); }, true});
}

std::vector<Term> terms_of(const FailingRun& run) {
  std::vector<Term> terms;
  const bool only_one =
      run.cotangents().size() == 1;  // all gradients are made of it: a factor is that of the output
  for (const auto& names : {run.states(), run.cotangents()})
    for (const std::string& name : names) {
      if (only_one && name == run.cotangents().front()) continue;
      terms.push_back({"what " + name + " gives", [&run, name] {
                         return missing_from(run, evaluate_with(run, name, zeros(run.inputs().at(name))));
                       }});
    }
  if (is_schedulable(run) && !reads_before_write(run))
    terms.push_back({"a token's own term", [&run] {
                       return missing_from(
                           run, evaluate_schedule(run, schedule_of(run, [](const TokenPlace& p) {
                                                    return Events{{p.row, -1, p.row}, {-1, p.row, -1}};
                                                  })));
                     }});
  if (reads_before_write(run) && run.inputs().count("u"))
    terms.push_back({"the bonus", [&run] {
                       return missing_from(run, evaluate_with(run, "u", zeros(run.inputs().at("u"))));
                     }});
  for (const bool own : {true, false})
    for (DivisorPart& part : divisor_gradients(run, own))
      terms.push_back({part.text, [part = part.part] { return std::optional(part); }, true});
  if (!divisor_gradients(run, false).empty())
    terms.push_back({"what the numerator gives", [&run] { return through_numerator(run); }, true});
  append_pairs_of_sub_chunks(run, terms);
  return terms;
}

/// By how much an output's error is a multiple of the term, by least squares over its wrong elements.
std::optional<double> excess_of(const FailingRun& run, const OutputComparison& o,
                                const PredictedOutput& term) {
  const Tensor& got = run.outputs->at(o.name);
  const ReferenceOutput& right = *run.expected(o.name);
  double over = 0, under = 0;
  for (size_t i = 0; i < right.mid.size(); ++i) {
    if (o.verdicts[i] != ElementVerdict::violation || !(right.bound[i] > 0)) continue;
    const double x = term.mid[i] / right.bound[i],
                 error = (got.value(static_cast<int64_t>(i)) - right.mid[i]) / right.bound[i];
    if (std::isfinite(x) && std::isfinite(error)) over += error * x, under += x * x;
  }
  if (!(under > 0) || std::fabs(over / under) > kLargest) return std::nullopt;
  return over / under;
}

std::string weight_text(const FailingRun& run, double weight, bool& known) {
  const double s = run.problem.scale;
  const std::pair<double, const char*> numbers[] = {{-1, "with the other sign"},
                                                    {2, "twice"},
                                                    {0.5, "by half"},
                                                    {s, "times the scale"},
                                                    {1 / s, "divided by the scale"}};
  if (std::fabs(weight) < kClose) return "not at all";
  for (const auto& [number, text] : numbers)
    if (number != 1 && std::fabs(weight / number - 1) < kClose) return text;
  known = false;
  return fmt::format("with the weight {:.6g}", weight);
}

/// Each wrong output that has the term, with it reweighed; none where the weight is 1, or 0 and other
/// meanings say that.
std::optional<Prediction> reweighed_term(const FailingRun& run, const Prediction& term, bool may_miss,
                                         bool only_known, std::string& text, Numbers& numbers) {
  Prediction p = reference_prediction(run);
  std::map<std::string, std::string> said;
  for (const OutputComparison* o : run.wrong()) {
    const auto found = term.find(o->name);
    if (found == term.end() || found->second.mid.size() != o->verdicts.size()) continue;
    const std::optional<double> excess = excess_of(run, *o, found->second);
    if (!excess || std::fabs(*excess) < kClose || (!may_miss && std::fabs(*excess + 1) < kClose)) continue;
    bool known = true;
    const std::string how = weight_text(run, 1 + *excess, known);
    if (known != only_known) return std::nullopt;
    if (!known) numbers[o->name] = 1 + *excess;
    PredictedOutput& out = p.at(o->name);
    for (size_t i = 0; i < out.mid.size(); ++i) {
      const double more = *excess * found->second.mid[i];
      out.mid[i] += more,
          out.bound[i] += kRounding * std::fabs(more) + std::fabs(*excess) * found->second.bound[i];
    }
    said[how] += (said[how].empty() ? "" : ", ") + o->name;
  }
  if (said.empty()) return std::nullopt;
  for (const auto& [how, outputs] : said)
    text += fmt::format("{}{} {}", text.empty() ? " " : "; ", outputs, how);
  return p;
}

std::vector<Variant> reweighed_terms(const FailingRun& run) {
  std::vector<Variant> v;
  for (const Term& term : terms_of(run)) {
    const auto once = std::make_shared<std::optional<std::optional<Prediction>>>();
    for (const bool known : {true, false}) {
      const auto text = std::make_shared<std::string>();
      const auto numbers = std::make_shared<Numbers>();
      Variant variant{term.text + " enters",
                      [&run, term, known, text, numbers, once] {
                        text->clear(), numbers->clear();
                        if (!*once) *once = term.value();
                        const std::optional<Prediction>& value = **once;
                        return value ? reweighed_term(run, *value, term.may_miss, known, *text, *numbers)
                                     : std::nullopt;
                      },
                      kWeights};
      variant.fitted = text, variant.numbers = numbers;
      v.push_back(std::move(variant));
    }
  }
  return v;
}

}  // namespace

std::vector<Meaning> term_meanings() {
  return {{"term-reweighed",
           "a term of a sum enters with the other sign, twice, times a constant, or not at all",
           "check what multiplies that term", reweighed_terms, 0.93}};
}

}  // namespace assay
