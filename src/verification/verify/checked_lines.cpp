#include "src/verification/verify/checked_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/vm/checks/checks.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/deciding_statements.h"
#include "src/verification/diagnosis/missing_store.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/diagnosis/weak_barriers.h"

namespace assay {
namespace {

constexpr std::string_view kWithBarrier = "with a barrier of the block in its place";

bool has_place(const Verification& v) {
  const auto nonfinite = [](const OutputComparison& o) { return o.nonfinite > 0; };
  return v.trap || std::any_of(v.outputs.begin(), v.outputs.end(), nonfinite);
}

bool is_first(const Verification& v, std::string_view cause) {
  return !v.diagnosis.empty() && v.diagnosis.front().cause == cause;
}

/// Of outputs that were not written the guard of the store that should have, or the store itself.
void add_missing_stores(const CheckReport& report, const Program& program, const TensorMap& inputs,
                        const vm::MachineOptions& machine, std::vector<SuspectLine>& lines) {
  constexpr int64_t kMostElements = 100'000;
  const SourceText source(program.name);
  for (const CheckFinding& finding : report.findings) {
    if (finding.kind != CheckKind::never_written) continue;
    for (const ProgramOutput& output : program.outputs) {
      const Tensor shape(output.name, output.dtype, output.axes);
      if (!finding.element.starts_with(output.name + "[") || shape.size() > kMostElements) continue;
      int64_t flat = 0;
      while (flat < shape.size() && shape.element_name(flat) != finding.element) ++flat;
      if (flat == shape.size()) continue;
      const auto missing = find_missing_store(program, inputs, machine, output.name, flat, source);
      if (missing && missing->at.where.line > 0) lines.push_back({missing->at, finding.message});
      if (missing && missing->store && missing->store->where.line > 0)
        lines.push_back({*missing->store, finding.message});
    }
  }
}

/// What says where an access is made: of which block, or else the nearest statement that does.
void add_addressing(const Program& program, const SourceLocation& access, const SourceText& source,
                    std::vector<SuspectLine>& lines) {
  const std::vector<ChainLink> makers = address_makers(program, access, source);
  if (makers.empty() || lines.size() >= kLinesSaid) return;
  if (const SuspectLine line{makers.back(), fmt::format("it makes the address of {}", place_of(access))};
      !holds(lines, line))
    lines.push_back(line);
}

/// Behind an access that goes wrong, or that another races with: statements without which it would not be
/// made.
void add_deciding(const Program& program, const SourceLocation& access, const SourceText& source,
                  std::vector<SuspectLine>& lines) {
  if (lines.size() >= kLinesSaid) return;
  for (const ChainLink& link : deciding_statements(program, access, source))
    if (const SuspectLine line{link, fmt::format("it decides whether {} is reached", place_of(access))};
        !holds(lines, line))
      lines.push_back(line);
}

}  // namespace

bool is_finite_fault(const Verification& v) {
  const auto wrong = [](const OutputComparison& o) { return o.violation + o.wrong_class > 0; };
  return !has_place(v) &&
         (std::any_of(v.outputs.begin(), v.outputs.end(), wrong) || (v.formula && v.formula->violated()));
}
bool is_checks_own(const Verification& v) {
  return !has_place(v) && !is_finite_fault(v) && v.checks && !v.checks->findings.empty();
}

std::string place_of(const SourceLocation& where) {
  return fmt::format("{}:{}", where.file, where.line);
}

bool same_place(const SuspectLine& a, const SuspectLine& b) {
  const SourceLocation &x = a.at.where, &y = b.at.where;
  return x.file == y.file && x.line == y.line && (x.line > 0 || x.ptx_line == y.ptx_line);
}
bool goes_through(const SuspectLine& inner, const SuspectLine& outer) {
  const std::vector<std::string>& frames = inner.at.where.frames;
  return !same_place(inner, outer) && std::count(frames.begin(), frames.end(), place_of(outer.at.where)) > 0;
}
bool holds(const std::vector<SuspectLine>& lines, const SuspectLine& line) {
  return std::any_of(lines.begin(), lines.end(), [&](const SuspectLine& l) { return same_place(l, line); });
}

void put_trapped(const Program& program, Verification& v) {
  if (v.trap->kind != TrapKind::out_of_bounds || !v.lines.empty()) return;
  const SourceText source(program.name);
  std::vector<SuspectLine> lines{{{v.trap->where, "", source.line(v.trap->where)}, v.trap->message}};
  if (v.checks)
    for (const CheckFinding& finding : v.checks->findings)
      if (const SuspectLine line{{finding.at.where, "", source.line(finding.at.where)}, finding.message};
          finding.kind == CheckKind::index_wrap && finding.at.where.line > 0 && !holds(lines, line))
        lines.push_back(line);
  add_addressing(program, v.trap->where, source, lines);
  add_deciding(program, v.trap->where, source, lines);
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
  v.lines.assign(lines.begin() + 1, lines.end());
}

void put_checked_first(const Program& program, const TensorMap& inputs, const vm::MachineOptions& machine,
                       double seconds, Verification& v) {
  const bool race = is_first(v, "data-race");
  if (!race && !is_first(v, "unwritten-value") && !is_first(v, "out-of-bounds") && !is_checks_own(v)) return;
  std::optional<CheckReport> own;
  if ((!v.checks || v.checks->findings.empty()) && v.lane_instructions <= thresholds::kCheckInstructions)
    own = vm::run_checked(program, inputs, machine, vm::Checks{});
  const CheckReport* report = own ? &*own : v.checks ? &*v.checks : nullptr;
  if (!report) return;
  const SourceText source(program.name);
  std::vector<SuspectLine> lines;
  const auto add = [&](const SuspectLine& line) {
    if (line.at.where.line > 0 && !holds(lines, line)) lines.push_back(line);
  };
  if (race)
    for (const ChainLink& barrier : barriers_too_weak(program, inputs, machine, source, seconds))
      add({barrier, fmt::format("{} no thread reaches memory too early", kWithBarrier)});
  for (const CheckFinding& finding : report->findings) {
    const auto add_place = [&](const CheckedPlace& place) {
      add({{place.where, "", source.line(place.where)}, finding.message});
    };
    add_place(finding.at);
    if (finding.other) add_place(*finding.other);
  }
  const bool lacks_barrier = race && !lines.empty() && lines.front().reason.starts_with(kWithBarrier);
  for (const CheckFinding& finding : report->findings)
    if (!lacks_barrier && (race || finding.kind == CheckKind::out_of_bounds))
      add_addressing(program, finding.at.where, source, lines);
  if (lines.empty()) add_missing_stores(*report, program, inputs, machine, lines);
  for (const SuspectLine& line : v.lines) add(line);
  for (const CheckFinding& finding : report->findings)  // within a block a race lacks a barrier
    if (finding.kind == CheckKind::race && finding.other && finding.other->block != finding.at.block)
      add_deciding(program, finding.at.where, source, lines);
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
  if (!lines.empty()) v.lines = std::move(lines);
}

}  // namespace assay
