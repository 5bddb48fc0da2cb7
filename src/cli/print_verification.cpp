#include "src/cli/print_verification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/base/program/source_place.h"
#include "src/case/parameters.h"
#include "src/result/finding_kind.h"

namespace assay::cli {
namespace {

constexpr size_t kInputsPrinted = 6;

std::string place(const SourceLocation& where) {
  if (where.file.empty()) return fmt::format("{} (PTX line {})", where.function, where.ptx_line);
  return fmt::format("{} (PTX line {})", source_place(where), where.ptx_line);
}

/// The calls around an inlined line, down to the kernel's entry.
void print_frames(const Console& console, const SourceLocation& where) {
  const std::vector<std::string>& frames = where.frames;
  auto call = std::find(frames.begin(), frames.end(), fmt::format("{}:{}", where.file, where.line));
  for (call += call != frames.end(); call != frames.end(); ++call)
    console.line(console.styled(Style::dim, fmt::format("    inlined at {}", *call)));
}

std::string sizes_text(const Case& c) {
  std::string text = fmt::format("B={} T={} H={}", c.B, c.T, c.H);
  if (c.HV) text += fmt::format(" HV={}", c.HV);
  text += fmt::format(" K={} V={}", c.K, c.V);
  if (c.M) text += fmt::format(" M={}", c.M);
  return text;
}

std::string packing_text(const std::vector<int64_t>& offsets) {
  if (offsets.size() <= 8) return fmt::format(", packed {}", fmt::join(offsets, ","));
  return fmt::format(", {} packed sequences", offsets.size() - 1);
}

std::string case_text(const Verification& v) {
  const Case& c = v.case_;
  std::string text =
      fmt::format("{}  {}, gate {}", sizes_text(c), format(c.dtype).name, format(c.gate_dtype).name);
  if (v.token.empty())
    text += ", inputs from a file";  // nothing was drawn: no token
  else
    text += fmt::format(", decay {}, values {}, seed {}", c.decay, c.values, c.seed);
  if (c.scale) text += fmt::format(", scale {}", *c.scale);
  if (!c.parameters.empty()) text += fmt::format(", {}", parameters_text(c.parameters));
  if (!c.layout.empty()) text += fmt::format(", layout {}", c.layout);
  if (!c.cu_seqlens.empty()) text += packing_text(c.cu_seqlens);
  if (c.initial_state && !c.without.contains("initial_state")) text += ", initial state";
  if (c.direction != Direction::forward) text += fmt::format(", {}", name_of(c.direction));
  if (c.final_state_gradient) text += ", gradient of the final state";
  if (!c.without.empty()) text += fmt::format(", without {}", fmt::join(c.without, ","));
  if (!c.overrides.empty()) text += fmt::format(", {}", fmt::join(c.overrides, " "));
  return text;
}

std::string count_of_elements(int64_t n, const char* what) {
  return fmt::format("{}{}{} element{}", n, *what ? " " : "", what, n == 1 ? "" : "s");
}

/// What the verdict rests on, in words.
std::string reason(const Verification& v) {
  if (v.trap) return fmt::format("{}: {}", name_of(v.trap->kind), v.trap->message);
  std::vector<std::string> parts;
  for (const OutputComparison& o : v.outputs) {
    if (o.nonfinite)
      parts.push_back(fmt::format("{} of {}", count_of_elements(o.nonfinite, "non-finite"), o.name));
    if (o.wrong_class)
      parts.push_back(fmt::format("{} of {}", count_of_elements(o.wrong_class, "wrongly finite"), o.name));
    if (o.violation)
      parts.push_back(fmt::format("{} of {} beyond the bound", count_of_elements(o.violation, ""), o.name));
    if (o.undecided)
      parts.push_back(fmt::format("{} of {}", count_of_elements(o.undecided, "undecided"), o.name));
  }
  if (v.formula)
    for (const FormulaOutput& o : v.formula->outputs)
      if (o.violation)
        parts.push_back(fmt::format("{} of {} wrong in exact arithmetic too",
                                    count_of_elements(o.violation, ""), o.name));
  for (const OutputComparison& o : v.expected_outputs)
    if (const int64_t wrong = o.violation + o.nonfinite + o.wrong_class)
      parts.push_back(fmt::format("{} of {} in the file not what the reference gives",
                                  count_of_elements(wrong, ""), o.name));
  if (v.checks && !v.checks->findings.empty()) {
    std::vector<std::string> kinds;
    for (const CheckFinding& finding : v.checks->findings)
      if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) kinds.push_back(finding.kind);
    parts.push_back(fmt::format("{}", fmt::join(kinds, ", ")));
  }
  if (!v.properties_failed.empty())
    parts.push_back(fmt::format(
        "{} broken", v.properties_failed.front().substr(0, v.properties_failed.front().find(':'))));
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, ", "));
  const std::string peer = v.bits_differ == 0 ? "; same bits on both engines" : "";
  if (v.partial && v.outputs.empty()) return "no trap, and no finding of the checks";
  return fmt::format("every element is within its proved bound{}{}", peer,
                     v.expected_outputs.empty() ? "" : "; the file's own outputs agree with the reference");
}

void print_outputs(const Console& console, const Verification& v) {
  std::vector<std::vector<std::string>> rows{{"output", "shape", "elements", "ok", "violation", "nonfinite",
                                              "class", "undecided", "max error/bound", "tightness"}};
  const auto add = [&](const OutputComparison& o, const char* of) {
    std::vector<std::string> shape;
    for (const Axis& axis : o.axes) shape.push_back(fmt::format("{}={}", axis.name, axis.size));
    rows.push_back({o.name + of, fmt::format("[{}] {}", fmt::join(shape, ","), format(o.dtype).name),
                    std::to_string(o.elements), std::to_string(o.ok), std::to_string(o.violation),
                    std::to_string(o.nonfinite), std::to_string(o.wrong_class), std::to_string(o.undecided),
                    fmt::format("{:.3g}", o.max_ratio), fmt::format("{:.3g}", o.max_tightness)});
  };
  for (const OutputComparison& o : v.outputs) add(o, "");
  for (const OutputComparison& o : v.expected_outputs) add(o, " in the file");
  console.table(rows, 2);
}

/// How well the kernel's own exact arithmetic agrees with the reference.
void print_formula(const Console& console, const Verification& v) {
  if (!v.formula) return;
  if (!v.formula->skipped.empty())
    return console.line(
        console.styled(Style::dim, fmt::format("formula not judged: {}", v.formula->skipped)));
  std::vector<std::vector<std::string>> rows{
      {"formula", "judged", "violation", "difference/rms", "allowed/rms"}};
  for (const FormulaOutput& o : v.formula->outputs)
    rows.push_back({o.name, fmt::format("{} of {}", o.judged, o.elements), std::to_string(o.violation),
                    fmt::format("{:.2g}", o.max_difference), fmt::format("{:.2g}", o.max_allowed)});
  console.table(rows, 2);
  const FormulaOutput* worst = nullptr;
  for (const FormulaOutput& o : v.formula->outputs)
    if (o.violation > 0 &&
        (!worst || o.worst.difference / o.worst.allowed > worst->worst.difference / worst->worst.allowed))
      worst = &o;
  if (!worst) return;
  console.line(
      fmt::format("  in exact arithmetic {} is {:.12g} where the formula gives {:.12g}: {:.3g} apart, "
                  "where {:.3g} can be explained",
                  worst->worst.element, worst->worst.exact, worst->worst.expected, worst->worst.difference,
                  worst->worst.allowed));
}

/// What a state is off by that these log decays decay.
void print_accumulated_decay(const Console& console, const Verification& v) {
  for (const AccumulatedDecay& sum : v.accumulated_decay)
    console.line(
        fmt::format("accumulated log decay: {:.6g} nats over the {} steps to {}, off by {:.3g} (bound "
                    "{:.3g}): a state is off by a factor "
                    "of {:.4g}",
                    sum.decay, sum.steps, sum.element, sum.error, sum.bound, std::exp(sum.error)));
}

/// The element that is shown: of the output with the worst one.
const OutputComparison* worst_output(const std::vector<OutputComparison>& outputs) {
  const auto badness = [](const OutputComparison& o) {
    return o.worst.flat < 0 ? -1 : std::isnan(o.worst.ratio) ? INFINITY : o.worst.ratio;
  };
  const auto worst = std::max_element(outputs.begin(), outputs.end(),
                                      [&](const auto& a, const auto& b) { return badness(a) < badness(b); });
  return worst == outputs.end() || worst->worst.flat < 0 ? nullptr : &*worst;
}

void print_worst(const Console& console, const std::vector<OutputComparison>& outputs, const char* what) {
  const OutputComparison* output = worst_output(outputs);
  if (!output) return;
  const WorstElement& w = output->worst;
  const int digits = 2 * format(output->dtype).bytes + 2;
  console.line(fmt::format("\n{} {}", console.styled(Style::bold, what), w.element));
  console.line(fmt::format("  got       {:<24.17g} {:#0{}x}", w.got, w.got_bits, digits));
  console.line(fmt::format("  expected  {:<24.17g} {:#0{}x} as {}, exactly {:a}", w.expected_rounded,
                           w.expected_bits, digits, format(output->dtype).name, w.expected));
  console.line(
      fmt::format("  error     {:<24.9g} {:.3g} relative, {:.3g} ulp", w.absolute, w.relative, w.ulp));
  console.line(fmt::format("  bound     {:<24.9g} {:a}", w.bound, w.bound));
  console.line(fmt::format("  error/bound {:.4g}", w.ratio));
}

void print_diagnosis(const Console& console, const Verification& v) {
  for (const Diagnosis& d : v.diagnosis) {
    console.line(fmt::format("{} {} ({:.0f} %): {}", console.styled(Style::bold, "cause"), d.cause,
                             100 * d.score, d.explanation));
    for (const std::string& evidence : d.evidence) console.line(fmt::format("  - {}", evidence));
    for (const std::string& against : d.against) console.line(fmt::format("  - against it: {}", against));
  }
}

void print_triage(const Console& console, const Verification& v) {
  if (!v.triage || v.triage->fault == Fault::none) return;
  console.line(fmt::format("\n{} {}: {}", console.styled(Style::bold, "at fault"), name_of(v.triage->fault),
                           v.triage->explanation));
  for (const std::string& line : v.triage->evidence) console.line(fmt::format("  - {}", line));
}

void print_checks(const Console& console, const Verification& v) {
  if (!v.checks) return;
  for (const CheckFinding& finding : v.checks->findings)
    console.line(fmt::format("  {}: {}{}", console.styled(Style::bad, finding.kind), finding.message,
                             finding.count > 1 && finding.at.access != "not written"
                                 ? fmt::format(" ({} instances)", finding.count)
                                 : ""));
}

/// Which checks ran, or why they did not.
void print_checked(const Console& console, const Verification& v) {
  if (!v.checks) return;
  std::string text =
      v.checks->ran.empty() ? "not checked" : fmt::format("checked: {}", fmt::join(v.checks->ran, ", "));
  if (!v.checks->skipped.empty())
    text += fmt::format(" for races and unwritten values: {}", v.checks->skipped);
  if (v.checks->seconds > 0) text += fmt::format(", in {:.3f} s", v.checks->seconds);
  console.line(console.styled(Style::dim, text));
}

/// Largest argument any exponential saw: above 0 a decay grows.
void print_exponents(const Console& console, const Verification& v) {
  if (v.exponents.empty()) return;
  double least = v.exponents[0].min, largest = v.exponents[0].max;
  for (const ExponentRange& e : v.exponents)
    least = std::min(least, e.min), largest = std::max(largest, e.max);
  console.line(
      console.styled(Style::dim, fmt::format("exponentials at {} places saw arguments from {:.6g} to {:.6g}",
                                             v.exponents.size(), least, largest)));
}

void print_timing(const Console& console, const Verification& v) {
  double enclosure = 0;
  for (const OutputComparison& o : v.outputs) enclosure = std::max(enclosure, o.max_enclosure);
  std::string text = fmt::format("kernel {:.3f} s", v.seconds_kernel);
  if (v.lane_instructions)
    text +=
        fmt::format(" ({:.1f} million lane instructions)", static_cast<double>(v.lane_instructions) * 1e-6);
  text += fmt::format(", reference {:.3f} s", v.seconds_reference);
  if (enclosure > 0)
    text +=
        fmt::format(" (its enclosures are at most 2^{:.0f} of the bound)", std::ceil(std::log2(enclosure)));
  console.line(console.styled(Style::dim, text));
}

}  // namespace

void print_origin(const Console& console, const Origin& origin, size_t depth) {
  console.line(fmt::format("\n{} {}", console.styled(Style::bold, "origin of"), origin.element));
  if (!origin.sentence.empty()) console.line(fmt::format("  {}", origin.sentence));
  if (origin.where.ptx_line == 0) {  // no instruction: nothing was ever stored there
    console.line(fmt::format("  {}", console.styled(Style::bad, name_of(origin.kind))));
    return;
  }
  console.line(
      fmt::format("  {} at {}", console.styled(Style::bad, name_of(origin.kind)), place(origin.where)));
  print_frames(console, origin.where);
  if (!origin.source_text.empty()) console.line(fmt::format("    {}", origin.source_text));
  console.line(fmt::format("  {}  -> {}", origin.instruction, origin.result));
  for (const OriginOperand& operand : origin.operands) {
    console.line(fmt::format("    {:<12} {:<6} = {:<24.9g} {:#x}", operand.name, operand.type, operand.value,
                             operand.bits));
  }
  console.line(
      fmt::format("  block ({}), thread ({})", fmt::join(origin.block, ","), fmt::join(origin.thread, ",")));
  if (origin.infinity_made_at) {
    console.line(fmt::format("  the infinity was made at {}: {}", place(origin.infinity_made_at->where),
                             origin.infinity_made_at->instruction));
  }
  if (!origin.inputs.empty()) console.line("  it depends on");
  for (size_t i = 0; i < std::min(kInputsPrinted, origin.inputs.size()); ++i) {
    const InputElement& input = origin.inputs[i];
    const bool inwards = std::fabs(std::atof(input.nearest_finite.c_str())) < std::fabs(input.value);
    const std::string nearest =
        input.nearest_finite.empty()
            ? ""
            : fmt::format("   finite from {} {} 0", input.nearest_finite, inwards ? "towards" : "away from");
    console.line(fmt::format("    {} = {}{}", input.element, input.value, nearest));
  }
  if (origin.inputs.size() > kInputsPrinted || origin.inputs_truncated) {
    const size_t more = origin.inputs.size() - std::min(kInputsPrinted, origin.inputs.size());
    console.line(fmt::format("    ... and {}{} more", origin.inputs_truncated ? "at least " : "",
                             more + (origin.inputs_truncated ? 1 : 0)));
  }
  if (!origin.chain.empty()) console.line("  and reached the output through");
  for_ends(
      origin.chain.size(), depth,
      [&](size_t i) {
        const ChainLink& link = origin.chain[i];
        console.line(fmt::format("    {:<44} {}{}", place(link.where), link.instruction,
                                 link.text.empty() ? "" : fmt::format("   {}", link.text)));
      },
      [&](size_t left_out) { console.line(fmt::format("    ... {} more (--depth)", left_out)); });
}

void print_verification(const Console& console, const Verification& v, size_t depth) {
  std::string verdict(name_of(v.verdict));
  std::transform(verdict.begin(), verdict.end(), verdict.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  console.line(fmt::format("{}  {}", console.styled(Style::bold, v.kernel), case_text(v)));
  console.line(console.styled(Style::dim, fmt::format("on {}; {}", v.backend, v.arithmetic)));
  console.line(fmt::format("\n{}  {}", console.styled(style_of(v.verdict), verdict), reason(v)));
  if (v.trap) {
    console.line(fmt::format("  at {}, block ({}), thread ({})", place(v.trap->where),
                             fmt::join(v.trap->block, ","), fmt::join(v.trap->thread, ",")));
    print_frames(console, v.trap->where);
  }
  if (v.partial) console.line(fmt::format("  {}", *v.partial));
  print_checks(console, v);
  for (const std::string& failure : v.properties_failed) console.line(fmt::format("  {}", failure));
  if (!v.outputs.empty()) {
    console.line("");
    print_outputs(console, v);
    print_formula(console, v);
    print_accumulated_decay(console, v);
  }
  print_worst(console, v.outputs, "worst element");
  if (expected_differs(v)) print_worst(console, v.expected_outputs, "worst element in the file");
  if (v.origin) print_origin(console, *v.origin, depth);
  print_origin_groups(console, v.origins);
  if (v.slice) print_slice(console, *v.slice, depth);
  print_triage(console, v);
  if (!v.diagnosis.empty()) console.line("");
  print_diagnosis(console, v);
  console.line("");
  print_exponents(console, v);
  print_timing(console, v);
  print_checked(console, v);
  console.line(fmt::format("replay: {}", v.replay));
}

}  // namespace assay::cli
