#include "src/result/one_per_defect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "src/base/program/source_place.h"
#include "src/result/finding_kind.h"
#include "src/result/identity.h"

namespace assay {
namespace {

/// An address that traps is a defect of its own; races and values that nothing wrote, which the checks say
/// beside it, have findings of their own where they are others. Waits that do not end may come of them.
bool is_apart(const Verification& v) {
  return v.trap && v.trap->kind != TrapKind::hang && v.trap->kind != TrapKind::barrier;
}

/// What a finding says of where and why; two that share one of these show one defect. A named cause alone is
/// not enough: two lines may have the same fault.
std::set<std::string> reasons_of(const Verification& v) {
  std::set<std::string> reasons;
  const auto add = [&](std::string_view why, std::string_view kind, const SourceLocation& where) {
    if (where.line > 0 || where.ptx_line > 0)
      reasons.insert(fmt::format("{}/{}/{}", why, kind, place_key(where)));
  };
  if (v.checks && !is_apart(v))
    for (const CheckFinding& finding : v.checks->findings) {
      add("check", name_of(finding.kind), finding.at.where);
      if (finding.other) add("check", name_of(finding.kind), finding.other->where);
      for (const RacingPair& pair : finding.also)
        for (const SourceLocation* where : {&pair.at.where, &pair.other.where})
          add("check", name_of(finding.kind), *where);
    }
  if (v.trap) add("trap", name_of(v.trap->kind), v.trap->where);
  if (v.origin) add("origin", name_of(v.origin->kind), v.origin->where);
  // Where blocks are dealt out, say, stands behind many stores: two may still be missing for two reasons.
  const bool of_store = v.origin && v.origin->kind == OriginKind::unwritten_memory;
  if (!v.diagnosis.empty() && !of_store)
    for (const SuspectLine& line : v.lines) add("cause", v.diagnosis.front().cause, line.at.where);
  return reasons;
}

constexpr double kNamed = 0.5;

/// What the kernel computes instead, in words; empty where that is not known.
std::string named_by(const Verification& v) {
  if (!names_its_cause(v) || v.diagnosis.front().score < kNamed) return "";
  const Diagnosis& d = v.diagnosis.front();
  return d.cause + ": " + d.explanation;
}

/// Findings that show one defect.
struct Defect {
  Verification shown;
  std::set<std::string> reasons;
  std::set<std::string> of_values, of_births;  ///< names, of wrong values and of non-finite ones
  std::string first_line;                      ///< that may have made finite values wrong; "": not looked for

  explicit Defect(Verification&& v) : shown(std::move(v)), reasons(reasons_of(shown)) {
    if (const std::string name = named_by(shown); !name.empty())
      (shown.origin ? of_births : of_values).insert(name);
    if (!shown.lines.empty() && !shown.origin) first_line = place_key(shown.lines.front().at.where);
  }
  bool has_no_name() const { return of_values.empty() && of_births.empty(); }
};

/// What names the cause itself comes before what shows its effects.
size_t rank_of(const Verification& v) {
  const auto rows = finding_kinds();
  const std::set<FindingKind> kinds = kinds_of(v);
  if (v.cause.starts_with("check/") || v.cause.starts_with("trap/")) return 0;
  if (v.checks && !v.checks->findings.empty() && v.cause.starts_with("property/")) return 1;
  for (size_t i = 0; i < rows.size(); ++i)
    if (kinds.contains(rows[i].kind)) return 2 + i;
  return 2 + rows.size();
}

std::string sentence_of(const Verification& v) {
  const std::vector<std::string> faults = faults_of(v);
  return faults.empty() ? v.cause : faults.front();
}

bool share(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& reason) { return b.contains(reason); });
}

/// Finite values that no cause explains, made wrong by the line that made others wrong.
bool is_unnamed_of(const Defect& a, const Defect& b) {
  return (a.has_no_name() || b.has_no_name()) && !a.first_line.empty() && a.first_line == b.first_line;
}

/// One place or, where finite values say what is computed instead, one name. Two births of one name may be
/// two faults. What is known and what is new are never one.
bool are_one(const Defect& a, const Defect& b) {
  return a.shown.kernel == b.shown.kernel && a.shown.known == b.shown.known &&
         (share(a.reasons, b.reasons) || share(a.of_values, b.of_values) || share(a.of_values, b.of_births) ||
          share(a.of_births, b.of_values) || is_unnamed_of(a, b));
}

/// `b`'s evidence joins `a`'s; what says more stays.
void put_together(Defect& a, Defect&& b) {
  if (is_unnamed_of(a, b) ? a.has_no_name() && !b.has_no_name() : rank_of(b.shown) < rank_of(a.shown))
    std::swap(a.shown, b.shown);
  a.reasons.merge(b.reasons);
  a.of_values.merge(b.of_values);
  a.of_births.merge(b.of_births);
  if (a.first_line.empty()) a.first_line = b.first_line;
  Verification &to = a.shown, &from = b.shown;
  std::move(from.also.begin(), from.also.end(), std::back_inserter(to.also));
  for (const std::string& failure : from.properties_failed)
    if (std::find(to.properties_failed.begin(), to.properties_failed.end(), failure) ==
        to.properties_failed.end())
      to.properties_failed.push_back(failure);
  if (to.diagnosis.empty()) to.diagnosis = from.diagnosis;
  if (to.lines.empty()) to.lines = from.lines;
  if (!to.entry || from.origin) to.entry = from.origin ? from.origin->where : from.entry;
  to.also.push_back({from.cause, sentence_of(from), from.replay, identity_of(from)});
}

}  // namespace

std::vector<Verification> one_per_defect(std::vector<Verification> findings) {
  std::vector<Defect> defects;
  for (Verification& v : findings) defects.emplace_back(std::move(v));
  for (size_t i = 0; i < defects.size(); ++i)
    for (size_t j = i + 1; j < defects.size();) {
      if (!are_one(defects[i], defects[j])) {
        ++j;
        continue;
      }
      put_together(defects[i], std::move(defects[j]));
      defects.erase(defects.begin() + static_cast<std::ptrdiff_t>(j));
      j = i + 1;  // it may have a reason now that an earlier one shares
    }
  std::vector<Verification> shown;
  for (Defect& defect : defects) shown.push_back(std::move(defect.shown));
  return shown;
}

std::vector<std::string> identities_of(const Verification& v) {
  std::vector<std::string> identities{identity_of(v)};
  for (const SameDefect& other : v.also) identities.push_back(other.identity);
  return identities;
}

}  // namespace assay
