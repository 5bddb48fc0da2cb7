#include "src/verification/verify/rounding_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/compile_ptx.h"
#include "kernels/kernel.h"
#include "src/base/vm/shadow_run.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/explain.h"

namespace assay {
namespace {

constexpr size_t kLinesNamed = 3;
/// Without optimisation a program runs so many times the instructions.
constexpr uint64_t kPlainly = 10;

std::vector<SuspectLine> lines_of(const ShadowReport& shadow, const SourceText& source,
                                  const std::string& beginning) {
  std::vector<SuspectLine> lines;
  for (const ShadowLine& line : shadow.lines) {
    if (lines.size() == kLinesNamed) break;
    if (!beginning.empty() && line.where.line == 0) continue;
    lines.push_back({{line.where, line.instruction, source.line(line.where)},
                     fmt::format("{}{:.1f} % of all rounding errors", beginning, line.share)});
    if (!beginning.empty()) lines.back().at.where.ptx_line = 0;  // of another text than the kernel's
  }
  return lines;
}

}  // namespace

std::vector<SuspectLine> lines_of_rounding(const Kernel& kernel, const Program& program,
                                           const TensorMap& inputs, const VerifyOptions& options,
                                           const Verification& v) {
  const vm::ShadowOptions of_element{.element = violating_element(v), .locate = location_of};
  std::optional<ShadowReport> own;
  if (!v.shadow && v.lane_instructions <= thresholds::kShadowInstructions)
    own = vm::run_shadow(program, inputs, options.origin.machine, of_element);
  const ShadowReport* shadow = v.shadow ? &*v.shadow : own ? &*own : nullptr;
  if (!shadow) return {};
  const SourceText source(v.kernel);
  std::vector<SuspectLine> lines;
  const auto add = [&](const SuspectLine& line) {
    const auto is_same = [&](const SuspectLine& known) {
      const SourceLocation &a = known.at.where, &b = line.at.where;
      return a.file == b.file && a.line == b.line && (a.line > 0 || a.ptx_line == b.ptx_line);
    };
    if (std::none_of(lines.begin(), lines.end(), is_same)) lines.push_back(line);
  };
  const std::vector<SuspectLine> optimised = lines_of(*shadow, source, "");
  std::vector<SuspectLine> plain;
  if (kernel.plainly && kPlainly * v.lane_instructions <= thresholds::kShadowInstructions) try {
      plain = lines_of(vm::run_shadow(kernel.plainly(program), inputs, options.origin.machine, of_element),
                       source, "compiled without optimisation, ");
    } catch (const CannotCompile&) {  // then the optimised program is asked alone
    }
  for (const SuspectLine& line : optimised) add(line);
  for (const SuspectLine& line : plain) add(line);
  if (lines.size() > kLinesNamed) lines.resize(kLinesNamed);
  return lines;
}

}  // namespace assay
