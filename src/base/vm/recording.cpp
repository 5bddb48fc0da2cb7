#include "src/base/vm/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/vm/recorder.h"

namespace assay::vm {
namespace {

ptx::Type element_type(ptx::Type t) {
  return t == ptx::Type::f16x2 ? ptx::Type::f16 : t == ptx::Type::bf16x2 ? ptx::Type::bf16 : t;
}

std::string operand_name(const ptx::Function& function, const ptx::Operand& o) {
  switch (o.kind) {
    case ptx::Operand::Kind::reg:
      return function.registers[o.reg].name;
    case ptx::Operand::Kind::immediate:
      return o.bits >> 32 ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits);
    default:
      return o.name;
  }
}

std::vector<int64_t> input_elements(const RecordedRun& run, const std::vector<uint32_t>& leaves) {
  std::vector<int64_t> elements;
  for (uint32_t leaf : leaves) {
    const auto range =
        std::upper_bound(run.leaves.begin(), run.leaves.end(), leaf,
                         [](uint32_t l, const RecordedRun::LeafRange& r) { return l < r.first; });
    if (range == run.leaves.begin()) continue;
    elements.push_back(static_cast<int64_t>((range - 1)->input) << 40 | (leaf - (range - 1)->first));
  }
  return elements;
}

Source outside_source(const RecordedRun& run, Dependence d) {
  const Provenance::Elements found = run.provenance.collect(d, 1);
  return found.unwritten                            ? Source::unwritten
         : !found.leaves.empty() || found.truncated ? Source::input
                                                    : Source::literal;
}

Event event_of(const RecordedRun& run, int32_t index, bool with_inputs) {
  const LoggedEvent& logged = run.log.events()[index];
  const RecordedRun::Site& site = run.sites[logged.site];
  const Launch& launch = run.launches[site.launch];
  Event e;
  e.launch = site.launch;
  e.module = site.module;
  e.function = site.function;
  e.instruction = site.instruction;
  e.block = unfold(logged.block, launch.grid);
  e.thread = unfold(logged.thread, launch.block);
  e.result = value_of(logged.result_type, logged.result_bits);
  e.born = logged.born;
  const ptx::Function& function = run.modules[site.module]->functions[site.function];
  const ptx::Instruction& instruction = function.body[site.instruction];
  const bool matrix = is_matrix_product(instruction.form.operation);
  for (int i = 0; i < logged.operand_count; i++) {
    const LoggedOperand& o = run.log.operand(logged, i);
    EventOperand operand;
    if (matrix)
      operand.name = o.position == 2 ? "c" : fmt::format("{}[k={}]", o.position == 0 ? 'a' : 'b', o.k);
    else if (o.position + 1u < instruction.operands.size())
      operand.name = operand_name(function, instruction.operands[o.position + 1]);
    operand.type = ptx::name_of(element_type(o.type));
    operand.value = value_of(o.type, o.bits);
    operand.bits = o.bits;
    if (!std::isfinite(operand.value)) {
      operand.parent = static_cast<int32_t>(o.tag) - 1;
      if (o.tag == 0) operand.source = outside_source(run, o.dependence);
    }
    e.operands.push_back(operand);
  }
  if (!with_inputs) return e;
  const bool watched = index == run.watched && run.watched_elements;
  const Provenance::Elements found =
      watched ? *run.watched_elements : run.provenance.collect(logged.dependence, kListedElements);
  e.inputs = input_elements(run, found.leaves);
  e.inputs_truncated = found.truncated;
  return e;
}

EventLinks links_of(const RecordedRun& run, int32_t index) {
  const LoggedEvent& logged = run.log.events()[index];
  EventLinks links;
  links.born = logged.born;
  for (int i = 0; i < logged.operand_count; i++) {
    const LoggedOperand& o = run.log.operand(logged, i);
    if (!is_nonfinite(o.type, o.bits)) continue;
    if (o.tag)
      links.parents.push_back(static_cast<int32_t>(o.tag) - 1);
    else
      (is_nan(o.type, o.bits) ? links.outside_nan : links.outside_infinity) = true;
  }
  return links;
}

/// The cell of an element, with the tag of whichever half has one, and who stored it; nothing for what is no
/// buffer.
std::optional<ProvenanceMemory::Stored> stored_at(const RecordedRun& run, const std::string& output,
                                                  int64_t flat) {
  const auto [area, at, width] = run.memory.find(output, flat);
  if (!area) return std::nullopt;
  ProvenanceMemory::Stored stored = ProvenanceMemory::at(*area, at);
  for (uint32_t byte = 2; !stored.cell.tag && byte < width; byte += 2)
    stored.cell.tag = ProvenanceMemory::at(*area, at + byte).cell.tag;
  return stored;
}

Carrier carrier_of(const RecordedRun& run, const std::string& output, int64_t flat) {
  Carrier carrier;
  const std::optional<ProvenanceMemory::Stored> stored = stored_at(run, output, flat);
  if (!stored) return carrier;
  const auto& [cell, writer] = *stored;
  carrier.event = static_cast<int32_t>(cell.tag) - 1;
  if (!cell.tag) carrier.source = outside_source(run, cell.dependence);
  const Provenance::Elements found = run.provenance.collect(cell.dependence, kListedElements);
  carrier.inputs = input_elements(run, found.leaves);
  carrier.inputs_truncated = found.truncated;
  if (writer >= 0) {
    const RecordedRun::Site& site = run.sites[writer];
    carrier.launch = site.launch, carrier.module = site.module;
    carrier.function = site.function, carrier.instruction = site.instruction;
  }
  return carrier;
}

}  // namespace

Recording make_recording(std::shared_ptr<const RecordedRun> run) {
  Recording r;
  r.event_count = static_cast<int32_t>(run->log.events().size());
  r.events_truncated = run->log.truncated();
  r.event = [run](int32_t index) { return event_of(*run, index, true); };
  r.event_without_inputs = [run](int32_t index) { return event_of(*run, index, false); };
  r.links = [run](int32_t index) { return links_of(*run, index); };
  r.carrier_event = [run](const std::string& output, int64_t flat) {
    const std::optional<ProvenanceMemory::Stored> stored = stored_at(*run, output, flat);
    return stored ? static_cast<int32_t>(stored->cell.tag) - 1 : -1;
  };
  r.carrier = [run](const std::string& output, int64_t flat) { return carrier_of(*run, output, flat); };
  r.input_names = run->input_names;
  r.modules = run->modules;
  return r;
}

}  // namespace assay::vm
