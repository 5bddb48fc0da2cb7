// run_checked: the program's launches, block after block, under the checks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/checks/check_trace.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/checks/one_per_barrier.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

/// Buffers that are not there to be written: their races are followed only where they are.
std::set<std::string> input_names(const Program& program, const TensorMap& inputs) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : inputs) names.insert(name);
  for (const Tensor& constant : program.constants) names.insert(constant.name);
  return names;
}

/// Inputs that lie in a workspace or an output hold values there.
void note_inputs(WrittenCheck& check, const Memory& memory, const std::set<std::string>& inputs) {
  for (const Allocation& allocation : memory.allocations())
    for (const Part& part : allocation.parts)
      if (inputs.contains(part.name)) check.note_written(allocation, part);
}

/// Elements that the blocks that ran have written, from values that they have written themselves. Where an
/// input is not held nobody asks: nothing says what the values should be.
std::map<std::string, std::vector<uint8_t>> settled_elements(const WrittenCheck& check, const Memory& memory,
                                                             const Program& program,
                                                             const TensorMap& inputs) {
  std::map<std::string, std::vector<uint8_t>> settled;
  const auto is_held = [](const auto& input) { return input.second.is_held(); };
  if (!std::all_of(inputs.begin(), inputs.end(), is_held)) return settled;
  for (const ProgramOutput& output : program.outputs) {
    const Place place = *memory.find(output.name);
    const auto* const area = check.area(place.allocation->name);
    const auto width = static_cast<uint64_t>(format(output.dtype).bytes);
    if (!area || static_cast<int64_t>(area->bytes) > kLargestHeld) continue;
    std::vector<uint8_t>& elements = settled[output.name];
    for (uint64_t at = 0; at < place.bytes; at += width)
      elements.push_back(WrittenCheck::states(*area, place.offset + at, width) == written);
  }
  return settled;
}

/// All launches under the trace, up to a trap or until it has what it looks for.
TracedLaunch run_launches(const Program& program, PreparedProgram& prepared, CheckLog& log, CheckTrace& trace,
                          BarrierLines* barriers = nullptr) {
  TracedLaunch all;
  for (size_t i = 0; i < program.launches.size() && !all.trap && !trace.finished(); ++i) {
    const LaunchContext& context = prepared.enter(i);
    log.enter(context);
    trace.enter(context);
    if (barriers) note_barriers(*context.code, *barriers);
    TracedLaunch done = run_traced(context, prepared.blocks(i), trace);
    all.lane_instructions += done.lane_instructions;
    all.trap = std::move(done.trap);
  }
  return all;
}

/// A program under checks, run more than once where a finding asks for it.
struct CheckedProgram {
  const Program& program;
  const TensorMap& inputs;
  const MachineOptions& options;
  const Checks& checks;
  std::set<std::string> unfollowed;  ///< buffers whose races no run follows

  /// A run beside the one that counts: true where it trapped.
  bool run_beside(CheckLog& log, CheckTrace& trace) const {
    PreparedProgram prepared(program, inputs, options);
    return run_launches(program, prepared, log, trace).trap.has_value();
  }

  /// Whether anything depends on what racing loads got.
  bool racing_reads_matter(const std::vector<RacingReads>& racing) const {
    CheckLog log;
    CheckTrace trace(Checks::none(), {log, {}});
    trace.stray.emplace(racing);
    return run_beside(log, trace) || trace.stray->matter();
  }

  /// Lanes that store one number with different roundings are no race.
  void dismiss_split_products(CheckReport& report) const {
    if (std::none_of(report.findings.begin(), report.findings.end(), is_of_one_store)) return;
    CheckLog log;
    Checks races = Checks::none();
    races.races = true;
    CheckTrace trace(races, {log, unfollowed});
    trace.split.emplace();
    run_beside(log, trace);
    const std::vector<CheckFinding> split = log.take();
    const auto is_none = [&](const CheckFinding& f) {
      return is_of_one_store(f) && std::none_of(split.begin(), split.end(), [&](const CheckFinding& other) {
               return is_of_one_store(other) && other.at.where.ptx_line == f.at.where.ptx_line &&
                      other.at.where.function == f.at.where.function;
             });
    };
    report.dismiss(
        is_none,
        "the lanes store one number with different roundings of fused products: with every product "
        "rounded before its sum they store the same bits");
  }

  /// The run that counts; of the buffers that are not followed those that were written come back.
  std::set<std::string> run(CheckReport& report, std::optional<Trap>& trap) const;
};

std::set<std::string> CheckedProgram::run(CheckReport& report, std::optional<Trap>& trap) const {
  PreparedProgram prepared(program, inputs, options);
  CheckLog log;
  Checks chosen = checks;
  chosen.unwritten |= checks.strict_reads;
  CheckTrace trace(chosen, {log, unfollowed, checks.strict_reads, !program.blocks.empty()});
  if (trace.unwritten) {
    trace.unwritten->begin_run(prepared.memory(), program, inputs, checks.unwritten_bytes);
    note_inputs(*trace.unwritten, prepared.memory(), input_names(program, inputs));
  }
  BarrierLines barriers;
  TracedLaunch done = run_launches(program, prepared, log, trace, &barriers);
  report.lane_instructions = done.lane_instructions;
  trap = std::move(done.trap);
  if (!trap && checks.unwritten && !program.launches.empty()) {
    trace.unwritten->end_run(prepared.memory(), program.outputs);
    if (!program.blocks.empty())
      report.settled = settled_elements(*trace.unwritten, prepared.memory(), program, inputs);
  }
  for (const auto& [name, ranges] : checks.unwritten_bytes)
    if (trace.unwritten) report.unwritten[name] = trace.unwritten->never_stored(name);
  report.findings = log.take();
  report.dismissed.clear();
  const auto reads_global = [](const CheckFinding& f) { return f.reads_global; };
  if (!trap && std::any_of(report.findings.begin(), report.findings.end(), reads_global) &&
      trace.races->only_global_reads_race() && !racing_reads_matter(trace.races->racing_reads()))
    report.dismiss(
        reads_global,
        "what the racing loads gave reaches no store, no address and no decision: it was followed in "
        "a second run");
  if (!trap) dismiss_split_products(report);
  report.findings = one_per_barrier(std::move(report.findings), barriers);
  return trace.races ? trace.races->written_unfollowed() : std::set<std::string>{};
}

}  // namespace

const std::vector<CheckRow>& check_rows() {
  static const std::vector<CheckRow> rows = {
#define CHECK(type, member, name, summary) {CheckName::member, name, summary, &Checks::member},
#include "src/base/vm/checks/checks.def"
  };
  return rows;
}

Checks Checks::none() {
  Checks none;
  for (const CheckRow& row : check_rows()) none.*row.member = false;
  return none;
}

bool Checks::any() const {
  return strict_reads || std::any_of(check_rows().begin(), check_rows().end(),
                                     [&](const CheckRow& row) { return this->*row.member; });
}

Checks parse_checks(const std::string& text) {
  if (text == "all") return {};
  Checks chosen = Checks::none();
  std::string known;
  for (const CheckRow& row : check_rows()) known += std::string(row.name) + ", ";
  if (text == "none") return chosen;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto row = std::find_if(check_rows().begin(), check_rows().end(),
                                  [&](const CheckRow& r) { return r.name == part; });
    if (row == check_rows().end())
      throw BadInput(fmt::format("--checks: unknown check '{}'; there are: {}all, none", part, known));
    chosen.*row->member = true;
  }
  if (!chosen.any()) throw BadInput(fmt::format("--checks: names no check; there are: {}all, none", known));
  return chosen;
}

CheckReport run_checked(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                        const Checks& checks, std::optional<Trap>* trap) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report;
  std::optional<Trap> met;
  CheckedProgram checked{program, inputs, options, checks, input_names(program, inputs)};
  // An input that turns out to be written is followed in a second run.
  const std::set<std::string> written = checked.run(report, met);
  for (const std::string& name : written) checked.unfollowed.erase(name);
  if (!written.empty()) checked.run(report, met);
  for (const CheckRow& row : check_rows())
    if (checks.*row.member) report.ran.push_back(row.check);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (trap) *trap = std::move(met);
  return report;
}

}  // namespace assay::vm
