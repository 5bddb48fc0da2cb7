#include "src/verification/verify/located_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "src/verification/diagnosis/line_repair.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/checked_lines.h"

namespace assay {
namespace {

/// Counted seconds (counted_work.h), at most.
constexpr double kOfSlices = 3, kOfRepairs = 5, kOfPlainRepairs = 1.5, kOfPlainDecisions = 5;
/// Of the errors, what a change leaves that mends some elements.
constexpr double kMostlyRepaired = 0.5;
/// In so small an output many changes mend what is wrong; decisions of so few lines say something all the
/// same.
constexpr size_t kFewElements = 8, kFewLines = 2;

RepairedLines in_words(const std::vector<Repair>& repairs, const SuspectLines& suspects, size_t elements) {
  RepairedLines lines;
  std::set<std::string> decisive;  // lines of which a decision mends all
  for (const Repair& repair : repairs)
    if (repair.left == 0 && repair.simplicity <= kDecision) decisive.insert(place_of(repair.at.where));
  for (const Repair& repair : repairs) {
    if (repair.at.where.line == 0 && !repair.at.where.file.empty()) continue;  // the compiler's own
    const bool surprising = elements > kFewElements || repair.simplicity == 0 ||
                            (repair.simplicity <= kDecision && decisive.size() <= kFewLines);
    if (repair.left == 0 && surprising) {
      lines.plainest = std::min(lines.plainest, repair.simplicity);
      lines.whole.push_back({repair.at, fmt::format("with {} {}", repair.change, kAllRight)});
      if (repair.decides)
        lines.decided.push_back({*repair.decides, fmt::format("what it computes depends on it: with {} {}",
                                                              repair.change, kAllRight)});
      if (repair.maker)
        lines.made.push_back(
            {*repair.maker, fmt::format("it makes what was changed: with {} {}", repair.change, kAllRight)});
      if (repair.branch)
        lines.used.push_back(
            {*repair.branch, fmt::format("it is decided so: with {} {}", repair.change, kAllRight)});
      if (repair.taker)
        lines.used.push_back(
            {*repair.taker, fmt::format("it takes what was changed: with {} {}", repair.change, kAllRight)});
    } else if (repair.left > 0 && repair.left < kMostlyRepaired &&
               suspects.explain.contains(place_of(repair.at.where))) {
      lines.partial.push_back({repair.at, fmt::format("with {} {:.0f} % of the errors are gone",
                                                      repair.change, 100 * (1 - repair.left))});
    }
  }
  return lines;
}

/// Lines of which a changed instruction makes everything right, where the first such comparison is used, what
/// a repaired guard decides, and those whose values explain what is wrong.
std::vector<SuspectLine> ranked(const RepairedLines& repaired, const std::vector<SuspectLine>& suspects) {
  std::vector<SuspectLine> lines;
  const auto add = [&](const SuspectLine& line) {
    for (SuspectLine& other : lines) {
      if (same_place(other, line) || goes_through(other, line)) return;
      if (goes_through(line, other)) return void(other = line);  // it says more
    }
    lines.push_back(line);
  };
  for (const SuspectLine& line : repaired.whole)
    if (holds(suspects, line)) add(line);
  for (const SuspectLine& line : repaired.whole)
    if (lines.empty()) add(line);
  if (!repaired.used.empty()) add(repaired.used.front());
  if (!repaired.made.empty()) add(repaired.made.front());
  for (const SuspectLine& line : repaired.whole) add(line);
  if (!repaired.decided.empty()) add(repaired.decided.front());
  if (lines.empty() && !repaired.partial.empty() && holds(suspects, repaired.partial.front()))
    add(repaired.partial.front());
  for (const SuspectLine& line : suspects) {
    add(line);
    if (!repaired.partial.empty()) add(repaired.partial.front());
  }
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
  return lines;
}

/// How near a line is to one whose values explain what is wrong: 1 there, half of it some lines away. What is
/// missing, or was decided, stands around it and has no part in its values.
double nearness(const SourceLocation& where, const std::vector<SuspectLine>& lines) {
  constexpr double kHalf = 4;  // lines
  constexpr double kOfRank = 0.95;
  double nearest = 0, most = 1;
  const std::string file = where.file + ":";
  for (const SuspectLine& line : lines) {
    const auto to = [&](int other) {
      nearest = std::max(nearest, most * std::exp2(-std::abs(other - where.line) / kHalf));
    };
    if (where.line > 0 && line.at.where.file == where.file) to(line.at.where.line);
    for (const std::string& frame : line.at.where.frames)  // of calls on the way too
      if (where.line > 0 && frame.starts_with(file)) to(std::atoi(frame.c_str() + file.size()));
    most *= kOfRank;
  }
  return nearest;
}

/// `near`: lines that explain what is wrong.
std::vector<Repair> repairs_of(const TellingCase& told, const vm::MachineOptions& machine,
                               const SuspectLines& suspects, const std::vector<SuspectLine>& near,
                               double decision_seconds, double seconds) {
  const SourceText source(told.program.name);
  vm::ChangedRuns runs(told.program, told.inputs, machine);
  if (!runs.can_run()) return {};
  RepairSearch search;
  search.judge = [&](const vm::RealOutputs& changed) { return told.judge(changed, runs.unchanged()); };
  search.wrong = told.most_wrong();
  search.left = [&](const vm::RealOutputs& changed, const std::vector<vm::OutputElement>& of) {
    return told.left_of(changed, of);
  };
  search.may_compute_wrong = [&](const SourceLocation& where) {
    return suspects.explain.empty() || suspects.explain.contains(place_of(where));
  };
  size_t wrong = 0, right = 0;  // slices
  for (const auto& [site, behind] : suspects.behind)
    wrong = std::max<size_t>(wrong, behind.wrong), right = std::max<size_t>(right, behind.right);
  std::map<const ptx::Module*, Locations> locations;
  search.suspicion = [&, wrong, right](const ptx::Module* module, int32_t function, int32_t at) {
    const auto known = suspects.behind.find({module, function, at});
    if (known == suspects.behind.end())
      return nearness(locations.try_emplace(module, *module).first->second.of(function, at), near);
    const double of_wrong = known->second.wrong / std::max(1.0, static_cast<double>(wrong));
    const double of_right = known->second.right / std::max(1.0, static_cast<double>(right));
    return known->second.worth * of_wrong / (of_wrong + of_right + 0.01);
  };
  search.decision_seconds = decision_seconds;
  search.seconds = seconds;
  return find_repairs(runs, source, search);
}

/// Of the case, or of the same with tiny gates where that says it with far less: what is missing in an
/// exponent.
SuspectLines suspects_of(const ToldCases& cases, Values values, const vm::MachineOptions& machine,
                         double seconds) {
  const auto of = [&](const TellingCase& t) {
    return suspect_lines(t.program, t.inputs, machine, t.sample(), values, std::min(kOfSlices, seconds));
  };
  SuspectLines suspects = of(cases.sliced);
  if (!cases.tiny || suspects.changes <= 1) return suspects;
  SuspectLines linear = of(*cases.tiny);
  return linear.changes <= suspects.changes / 2 ? linear : suspects;
}

}  // namespace

SuspectLines suspects_in(const ToldCases& cases, const vm::MachineOptions& machine, double seconds) {
  return suspects_of(cases, Values::all, machine, seconds);
}

Located located(const ToldCases& cases, SuspectLines suspects, const vm::MachineOptions& machine,
                double seconds) {
  const std::vector<Repair> repairs =
      repairs_of(cases.told, machine, suspects, suspects.likeliest, 0, std::min(kOfRepairs, seconds));
  RepairedLines repaired = in_words(repairs, suspects, cases.told.judged_elements());
  return {std::move(repaired), std::move(suspects)};
}

namespace {

/// Lines of both lists: each place counts by its reciprocal, so that what both name comes before what one
/// does, but for the best of either.
std::vector<SuspectLine> fused(const std::vector<SuspectLine>& first,
                               const std::vector<SuspectLine>& second) {
  std::vector<std::pair<double, SuspectLine>> all;
  for (const std::vector<SuspectLine>* list : {&first, &second})
    for (size_t i = 0; i < list->size(); ++i) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const auto& line) { return same_place(line.second, (*list)[i]); });
      const double claim = 1 / static_cast<double>(i + 1);
      if (known == all.end())
        all.emplace_back(claim, (*list)[i]);
      else
        known->first += claim;
    }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SuspectLine> lines;
  for (auto& [claim, line] : all) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::optional<Located> located_plainly(const Kernel& kernel, const ToldCases& cases, const Located& optimised,
                                       const vm::MachineOptions& machine, double seconds) {
  const auto plainly = [&](const TellingCase& of) { return of.with(kernel.plainly(of.program), machine); };
  const bool fewer = &cases.sliced != &cases.told;
  const auto plain = plainly(cases.told), sliced = fewer ? plainly(cases.sliced) : std::nullopt;
  if (!plain || (fewer && !sliced)) return std::nullopt;
  const auto tiny = cases.tiny ? plainly(*cases.tiny) : std::nullopt;
  Located found;
  SuspectLines& suspects = found.suspects;
  suspects = suspects_of({*plain, sliced ? *sliced : *plain, tiny ? &*tiny : nullptr}, Values::telling,
                         machine, seconds);
  std::vector<Repair> repairs;
  if (optimised.repaired.plainest > kDecision)
    repairs = repairs_of(*plain, machine, suspects, fused(suspects.likeliest, optimised.suspects.likeliest),
                         std::min(kOfPlainDecisions, seconds),
                         optimised.repaired.plainest > kPlain ? std::min(kOfPlainRepairs, seconds) : 0);
  found.repaired = in_words(repairs, suspects, plain->judged_elements());
  RepairedLines& repaired = found.repaired;
  const auto of_the_source = [](const SuspectLine& line) { return line.at.where.line > 0; };
  const auto tell = [](SuspectLine& line) {
    line.reason = "compiled without optimisation, " + line.reason;
    line.at.where.ptx_line = 0;  // of another text than the kernel's
  };
  for (std::vector<SuspectLine>* lines :
       {&suspects.likeliest, &suspects.related, &suspects.passed_on, &suspects.in_product, &suspects.alike,
        &suspects.superfluous, &suspects.displaced, &suspects.addressed, &repaired.whole, &repaired.partial,
        &repaired.used, &repaired.decided, &repaired.made}) {
    std::erase_if(*lines, std::not_fn(of_the_source));
    for (SuspectLine& line : *lines) tell(line);
  }
  for (auto* lines : {&suspects.alone, &suspects.takers, &suspects.reads, &suspects.loads, &suspects.places,
                      &suspects.blocks}) {
    std::erase_if(*lines, [&](const auto& line) { return !of_the_source(line.second); });
    for (auto& [input, line] : *lines) tell(line);
  }
  return found;
}

namespace {

/// Of both programs. A change that makes everything right was tried, whichever of them it was tried on. Of
/// what explains neither knows more: without optimisation no statement is missing, but copies and conversions
/// of many explain alike.
std::vector<SuspectLine> ranked(const Located& optimised, const Located& plain) {
  const bool plainer = plain.repaired.plainest < optimised.repaired.plainest;
  RepairedLines repaired = plainer ? plain.repaired : optimised.repaired;
  const RepairedLines& other = plainer ? optimised.repaired : plain.repaired;
  const auto join = [](std::vector<SuspectLine>& to, const std::vector<SuspectLine>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  join(repaired.whole, other.whole);
  join(repaired.used, other.used);
  join(repaired.decided, other.decided);
  join(repaired.made, other.made);
  join(repaired.partial, other.partial);
  return ranked(repaired, fused(plain.suspects.likeliest, optimised.suspects.likeliest));
}

}  // namespace

std::vector<SuspectLine> ranked(const Located& optimised, const Located* plain) {
  return plain ? ranked(optimised, *plain) : ranked(optimised.repaired, optimised.suspects.likeliest);
}

}  // namespace assay
