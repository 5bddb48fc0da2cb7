#include "reports/print_verification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reference/operator.h"
#include "reports/section.h"
#include "src/case/parameters.h"
#include "src/result/finding_kind.h"

namespace assay {
namespace {

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

/// Of a kernel by another name than its operator's nothing is known here: it is taken to have gates.
bool may_have_gates(const Case& c) {
  const std::string operator_name = c.kernel.substr(0, c.kernel.find('.'));
  for (const Operator& op : operators())
    if (op.name == operator_name)
      return std::any_of(op.inputs.begin(), op.inputs.end(),
                         [](const ArgumentSpec& spec) { return spec.role == Role::log_decay; });
  return true;
}

std::string case_text(const Verification& v) {
  if (v.program) return fmt::format("{}", fmt::join(v.program->launches, "; "));
  const Case& c = v.case_;
  const bool gates = may_have_gates(c);
  std::string text = fmt::format("{}  {}", sizes_text(c), format(c.dtype).name);
  if (gates) text += fmt::format(", gate {}", format(c.gate_dtype).name);
  if (v.token.empty())
    text += v.replay.starts_with("assay.") ? ", tensors of the caller" : ", inputs from a file";  // not drawn
  else
    text += fmt::format("{}, values {}, seed {}", gates ? ", decay " + c.decay : "", c.values, c.seed);
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

/// What the verdict rests on, in words.
std::string reason(const Verification& v) {
  const std::vector<std::string> parts = faults_of(v);
  if (!parts.empty()) return fmt::format("{}", fmt::join(parts, ", "));
  const auto empty = [](const OutputComparison& o) { return o.elements == 0; };
  if (!v.outputs.empty() && std::all_of(v.outputs.begin(), v.outputs.end(), empty) &&
      v.expected_outputs.empty())
    return "no output has an element: nothing was compared";
  const std::string peer = v.bits_differ == 0 ? "; same bits on both engines" : "";
  if (v.program && v.outputs.empty())
    return v.checks && !v.checks->ran.empty()
               ? "no trap, no finding of the checks, nothing but finite values made"
               : "no trap, nothing but finite values made";
  if (v.program) return "every output agrees with what was expected";
  if (v.partial && v.outputs.empty()) return "no trap, and no finding of the checks";
  const auto by_formula = [](const OutputComparison& o) { return o.by_formula > 0; };
  const bool some = std::any_of(v.outputs.begin(), v.outputs.end(), by_formula);
  return fmt::format("every element is within its proved bound{}{}{}",
                     some ? ", or where none is finite right by its formula" : "", peer,
                     v.expected_outputs.empty() ? "" : "; the file's own outputs are not contradicted");
}

/// Of a pass: what a kernel with a state may take that the case did not give it. Empty: nothing.
std::string left_out(const Verification& v) {
  const bool has_state = std::any_of(v.outputs.begin(), v.outputs.end(),
                                     [](const OutputComparison& o) { return o.name == "final_state"; });
  if (v.verdict != Verdict::pass || v.token.empty() || !has_state) return "";
  std::vector<std::string_view> parts;
  if (!v.case_.initial_state || v.case_.without.contains("initial_state")) parts.push_back("initial state");
  if (v.case_.cu_seqlens.empty()) parts.push_back("packed sequences");
  if (v.case_.direction == Direction::forward) parts.push_back("gradients");
  if (parts.empty()) return "";
  return fmt::format("not in this case: {}; assay fuzz draws what the kernel takes of them",
                     fmt::join(parts, ", "));
}

}  // namespace

void print_verification(const Console& console, const Verification& v, size_t depth) {
  std::string verdict(name_of(v.verdict));
  std::transform(verdict.begin(), verdict.end(), verdict.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  console.prose(fmt::format("{}  {}", console.styled(style_of(v.verdict), verdict), reason(v)));
  console.prose(fmt::format("{}  {}", console.styled(Style::bold, v.kernel), case_text(v)));
  console.line(console.styled(Style::dim, v.program ? fmt::format("on {}", v.backend)
                                                    : fmt::format("on {}; {}", v.backend, v.arithmetic)));
  for (const Section* section : sections_of_console()) section->print(console, v, depth);
  console.line("");
  for (const Section* section : sections_of_notes()) section->note(console, v);
  if (const std::string text = left_out(v); !text.empty()) console.prose(text);
  console.line(fmt::format("replay: {}", Console::command(v.replay)));
}

}  // namespace assay
