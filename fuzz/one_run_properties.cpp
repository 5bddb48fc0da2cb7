// Properties that one run of a case shows, the checking machine's included.
#include <fmt/format.h>

#include <algorithm>

#include "fuzz/bit_comparison.h"
#include "fuzz/property_functions.h"

namespace assay {

bool within_bound_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.verdict != Verdict::domain;
}
Failure within_bound(PropertyRun& run) {
  for (const OutputComparison& output : run.verification.outputs)
    if (output.violation + output.nonfinite + output.wrong_class > 0)
      return fmt::format("{}: got {:.9g}, expected {:.9g}, error / bound {:.4g}", output.worst.element,
                         output.worst.got, output.worst.expected, output.worst.ratio);
  if (run.verification.trap) return trap_text(*run.verification.trap);
  return std::nullopt;
}

/// The pipeline has judged it.
bool formula_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.formula && v.formula->skipped.empty();
}
Failure formula(PropertyRun& run) {
  for (const FormulaOutput& output : run.verification.formula->outputs)
    if (output.violation > 0)
      return fmt::format("{}: exactly {:.12g}, expected {:.12g}, {:.3g} apart where {:.3g} can be explained",
                         output.worst.element, output.worst.exact, output.worst.expected,
                         output.worst.difference, output.worst.allowed);
  return std::nullopt;
}

/// The pipeline has judged it.
bool declared_roundings_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.rounding && std::any_of(v.rounding->outputs.begin(), v.rounding->outputs.end(),
                                   [](const RoundingOutput& output) { return output.skipped.empty(); });
}
Failure declared_roundings(PropertyRun& run) {
  for (const RoundingOutput& output : run.verification.rounding->outputs)
    if (output.unlikely > 0) return sentence_of(output.worst);
  return std::nullopt;
}

bool exponents_nonpositive_applies(const Verification& v, const Kernel& kernel, const Operator&) {
  return was_run(v) && kernel.exponents_nonpositive && !v.exponents.empty();
}
Failure exponents_nonpositive(PropertyRun& run) {
  for (const ExponentRange& range : run.verification.exponents)
    if (range.max > 0 || range.nans > 0)
      return fmt::format("{} at {}:{} saw {:.9g} and {} NaN", range.instruction, range.where.file,
                         range.where.line, range.max, range.nans);
  return std::nullopt;
}

/// The pipeline has run the peer and noted what differs; nothing is run again.
bool same_bits_on_peer_applies(const Verification& v, const Kernel&, const Operator&) {
  return v.bits_differ >= 0;
}
Failure same_bits_on_peer(PropertyRun& run) {
  if (run.verification.bits_differ == 0) return std::nullopt;
  return fmt::format("{} elements differ", run.verification.bits_differ);
}

/// The pipeline has noted it.
bool inputs_unchanged_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v);
}
Failure inputs_unchanged(PropertyRun& run) {
  static constexpr std::string_view kName = "inputs-unchanged: ";
  for (const std::string& failed : run.verification.properties_failed)
    if (failed.starts_with(kName)) return failed.substr(kName.size());
  return std::nullopt;
}

/// Memory that a caller hands on is seldom NaN: the same with zeros in it, or with large finite numbers
/// (0x7b7b is 6.1e4 as fp16 and 1.3e36 as bf16 and fp32).
bool memory_recycled_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v);
}
Failure memory_recycled(PropertyRun& run) {
  const uint8_t poison = run.case_.seed % 2 == 0 ? 0x00 : 0x7b;
  if (Failure f = same_outcome(run.outcome(), run.run_poisoned(poison)))
    return fmt::format("memory filled with bytes 0xff against 0x{:02x}, {}", poison, *f);
  return std::nullopt;
}

bool same_bits_twice_applies(const Verification& v, const Kernel&, const Operator&) {
  return was_run(v);
}
Failure same_bits_twice(PropertyRun& run) {
  return same_outcome(run.outcome(), run.run(run.inputs()));
}

namespace {

/// Enough to see a fault, little enough for a test of a few seconds.
constexpr uint64_t kMostCheckedInstructions = 200'000'000;

bool checked(const Verification& v) {
  return was_run(v) && v.lane_instructions <= kMostCheckedInstructions;
}
/// The first finding of one check of the machine.
Failure first_of(PropertyRun& run, CheckName check) {
  for (const CheckFinding& finding : run.checks().findings)
    if (finding.check == check) return fmt::format("{}: {}", name_of(finding.kind), finding.message);
  return std::nullopt;
}

}  // namespace

bool copies_awaited_applies(const Verification& v, const Kernel&, const Operator&) {
  return checked(v);
}
Failure copies_awaited(PropertyRun& run) {
  return first_of(run, CheckName::async);
}
bool no_races_applies(const Verification& v, const Kernel&, const Operator&) {
  return checked(v);
}
Failure no_races(PropertyRun& run) {
  return first_of(run, CheckName::races);
}
bool reads_written_values_applies(const Verification& v, const Kernel&, const Operator&) {
  return checked(v);
}
Failure reads_written_values(PropertyRun& run) {
  return first_of(run, CheckName::unwritten);
}
bool stays_in_variables_applies(const Verification& v, const Kernel&, const Operator&) {
  return checked(v);
}
Failure stays_in_variables(PropertyRun& run) {
  return first_of(run, CheckName::bounds);
}
bool no_index_wrap_applies(const Verification& v, const Kernel&, const Operator&) {
  return checked(v);
}
Failure no_index_wrap(PropertyRun& run) {
  return first_of(run, CheckName::wrap);
}

}  // namespace assay
