#include "src/result/baseline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/result/identity.h"
#include "src/result/one_per_defect.h"

namespace assay {
namespace {

/// What became of the case that a finding was last seen with.
std::string outcome_of(const Verification& earlier, const FuzzRun& run) {
  for (const RerunRow& row : run.reruns)
    if (row.kernel == earlier.kernel && row.token == earlier.token) return row.outcome;
  return "not rerun";
}

/// A named cause of what one output shows: "gla/o/gate-sign". Empty where the finding's cause is no output's,
/// or has no name.
struct NamedSymptom {
  std::string key;
  bool finite = false;  ///< wrong values; else values that are not finite

  NamedSymptom(const std::string& kernel, const std::string& cause, const std::string& identity) {
    const size_t kind = cause.find('/');
    if (kind == cause.npos) return;
    const std::string_view word = std::string_view(cause).substr(0, kind);
    finite = word == "violation" || word == "formula" || word == "unlikely";
    if (!finite && word != "nonfinite") return;
    const std::string name = name_in(identity, kernel, cause);
    const std::string output = cause.substr(kind + 1, cause.find('/', kind + 1) - kind - 1);
    if (!name.empty()) key = kernel + "/" + output + "/" + name;
  }
};

/// Of several findings, what they were put together from included.
struct Identities {
  std::set<std::string> whole, all_undiagnosed, left_undiagnosed;
  std::set<std::string> finite_symptoms, other_symptoms;

  void add(const Verification& v) {
    for (std::string& identity : identities_of(v)) whole.insert(std::move(identity));
    all_undiagnosed.insert(undiagnosed_identity_of(v));
    for (const SameDefect& other : v.also) all_undiagnosed.insert(v.kernel + "/" + other.cause);
    if (!names_its_cause(v)) left_undiagnosed.insert(undiagnosed_identity_of(v));
    add(NamedSymptom(v.kernel, v.cause, identity_of(v)));
    for (const SameDefect& other : v.also) add(NamedSymptom(v.kernel, other.cause, other.identity));
  }
  void add(const NamedSymptom& symptom) {
    if (!symptom.key.empty()) (symptom.finite ? finite_symptoms : other_symptoms).insert(symptom.key);
  }
  /// The same output shows the same named cause otherwise. As where a run's findings are put together
  /// (one_per_defect.h), two births of one name may be two faults.
  bool has_named(const Verification& v) const {
    const auto has = [&](const NamedSymptom& symptom) {
      return !symptom.key.empty() && (finite_symptoms.contains(symptom.key) ||
                                      (symptom.finite && other_symptoms.contains(symptom.key)));
    };
    return has(NamedSymptom(v.kernel, v.cause, identity_of(v))) ||
           std::any_of(v.also.begin(), v.also.end(), [&](const SameDefect& other) {
             return has(NamedSymptom(v.kernel, other.cause, other.identity));
           });
  }
};

}  // namespace

Baseline baseline_of(std::string source, const nlohmann::json& result) {
  Baseline baseline{std::move(source), {}};
  if (result.is_object() && result.contains("kind") && result["kind"] == "fuzz") {
    baseline.findings = fuzz_run_from_json(result).findings;
  } else if (Verification v = verification_from_json(result); !v.cause.empty()) {
    baseline.findings.push_back(std::move(v));
  }
  return baseline;
}

void mark_familiar(const Baseline& baseline, std::vector<Verification>& findings) {
  Identities earlier;
  for (const Verification& v : baseline.findings) earlier.add(v);
  for (Verification& v : findings)
    v.known = earlier.whole.contains(identity_of(v)) || earlier.has_named(v) ||
              earlier.all_undiagnosed.contains(undiagnosed_identity_of(v));
}

void compare_with_baseline(const Baseline& baseline, FuzzRun& run) {
  const auto is_in = [](const Verification& v, const Identities& others) {
    for (const std::string& identity : identities_of(v))
      if (others.whole.contains(identity)) return true;
    if (others.has_named(v)) return true;
    // A run out of time has no diagnosis: then all else decides.
    const std::string undiagnosed = undiagnosed_identity_of(v);
    return !names_its_cause(v) ? others.all_undiagnosed.contains(undiagnosed)
                               : others.left_undiagnosed.contains(undiagnosed);
  };
  Identities earlier, now;
  for (const Verification& v : baseline.findings) earlier.add(v);
  for (Verification& v : run.findings) {
    now.add(v);
    v.known = is_in(v, earlier);
  }
  BaselineReport& report = run.baseline.emplace();
  report.source = baseline.source;
  for (const Verification& v : baseline.findings) {
    const bool fuzzed = std::find(run.kernels.begin(), run.kernels.end(), v.kernel) != run.kernels.end();
    if (!fuzzed || is_in(v, now)) continue;
    now.add(v);
    report.gone.push_back({v.kernel, v.cause, v.token, outcome_of(v, run), v.replay});
  }
}

}  // namespace assay
