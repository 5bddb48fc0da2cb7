// Properties of a kernel beside its error bound: what must hold between two runs, whatever the values are.
// One row each in properties.def; the row carries the behaviour.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/result/verification.h"
#include "src/verification/verify/companion.h"

namespace assay {

/// What is known of a run without drawing or running again; null where it is not.
struct KnownRun {
  const TensorMap* inputs = nullptr;
  const Outcome* outcome = nullptr;  ///< on these inputs, of the same backend
};

/// One case under test. Inputs are drawn and the kernel is run at most once for all properties together.
class PropertyRun {
 public:
  PropertyRun(const Verification&, const Kernel&, Backend&, const KnownRun& known = {});

  const Verification& verification;
  const Case& case_;
  const ResolvedCase resolved;
  const Kernel& kernel;
  const Operator& op;

  const TensorMap& inputs();
  const Outcome& outcome();  ///< of `case_` on `inputs()`
  /// `case_` itself on other inputs, another case, or itself with Program::poison.
  Outcome run(const TensorMap& inputs) { return derive(resolved, inputs); }
  Outcome run(const Case& c, const TensorMap& inputs) { return derive(resolve_unchecked(c, op), inputs); }
  Outcome run_poisoned(uint8_t poison) { return execute(resolved, inputs(), poison); }
  /// What the property under check has run since this was asked before.
  std::vector<DerivedRun> derived() { return std::exchange(derived_, {}); }
  const CheckReport& checks();  ///< of `case_` on `inputs()`, on the machine, whatever the backend is

 private:
  Outcome derive(const ResolvedCase&, const TensorMap& inputs);
  Outcome execute(const ResolvedCase&, const TensorMap& inputs, uint8_t poison = 0xff) const;

  Backend& backend_;
  const KnownRun known_;
  std::optional<TensorMap> inputs_;
  std::optional<Outcome> outcome_;
  std::optional<CheckReport> checks_;
  std::vector<DerivedRun> derived_;
};

/// Property::share of those that need the checking machine: all of them are checked in the same cases, as
/// many as cost a small part of the run.
inline constexpr double kByCost = 0;

struct Property {
  std::string_view name;
  double share;  ///< fraction of the cases in which fuzzing checks it, or kByCost
  std::string_view summary;
  bool (*applies)(const Verification&, const Kernel&, const Operator&);
  /// Nothing if it holds, else what differs: element, both values.
  std::optional<std::string> (*check)(PropertyRun&);
};

/// All properties, in the order of properties.def.
const std::vector<Property>& properties();
const Property& find_property(std::string_view name);

struct PropertyOutcome {
  const Property* property;
  std::optional<std::string> failure;
  std::vector<DerivedRun> derived;  ///< of one that fails: what it ran beside the case
};

/// Checks those of `selected` that apply. A kernel that does not accept a changed case (no packed sequences,
/// say), or a changed case that there is no memory for, has the property not checked.
std::vector<PropertyOutcome> check_properties(const Verification&, const Kernel&, Backend&,
                                              const std::vector<const Property*>& selected,
                                              const KnownRun& known = {});

/// All properties that apply; failures are added to the verification (verdict, cause "property/NAME",
/// properties_failed "NAME: what differs"). The runs that those which fail derived.
std::vector<DerivedRun> judge_properties(Verification&, const Kernel&, Backend&, const KnownRun& known = {});
/// Adds what failed to the verification, as above.
void record_failures(Verification&, const std::vector<PropertyOutcome>&);

}  // namespace assay
