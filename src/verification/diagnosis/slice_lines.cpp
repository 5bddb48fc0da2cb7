#include "src/verification/diagnosis/slice_lines.h"

#include <algorithm>

namespace assay {
namespace {

bool carries_value(vm::Flow flow) {
  using vm::Flow;
  return flow != Flow::integer && flow != Flow::comparison && flow != Flow::address && flow != Flow::vote;
}
/// A number of others; what it makes is of a format of its own.
bool computes_number(vm::Flow flow) {
  return flow == vm::Flow::arithmetic || flow == vm::Flow::matrix || flow == vm::Flow::conversion ||
         flow == vm::Flow::atomic;
}
bool computes(vm::Flow flow) {
  return flow == vm::Flow::arithmetic || flow == vm::Flow::matrix || flow == vm::Flow::select ||
         flow == vm::Flow::atomic;
}
}  // namespace

std::vector<uint64_t> inputs_behind(const vm::ValueSlice& slice) {
  std::vector<uint64_t> behind(slice.instances.size());  // producers stand after consumers
  for (size_t n = slice.instances.size(); n-- > 0;) {
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& operand = slice.operands[o];
      if (operand.made_by >= 0) behind[n] |= behind[static_cast<size_t>(operand.made_by)];
      if (operand.input >= 0) behind[n] |= uint64_t{1} << std::min<int64_t>(operand.input >> 40, 63);
    }
  }
  return behind;
}

void name_moved_formats(const std::vector<ptx::Type>& of_roots, vm::ValueSlice& slice) {
  const auto is_half = [](ptx::Type type) {
    return type == ptx::Type::f16 || type == ptx::Type::bf16 || ptx::is_packed(type);
  };
  const auto give = [&](ptx::Type type, vm::SliceInstance& to) {
    if (is_half(type) && !ptx::is_float(to.type) && carries_value(to.flow) && !computes_number(to.flow))
      to.type = type;
  };
  for (size_t e = 0; e < slice.roots.size(); ++e)
    if (slice.roots[e] >= 0) give(of_roots[e], slice.instances[static_cast<size_t>(slice.roots[e])]);
  for (const vm::SliceInstance& i : slice.instances)  // what takes a value stands before what makes it
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      vm::SliceOperand& from = slice.operands[o];
      if (!ptx::is_float(from.type) && !computes_number(i.flow) && is_half(i.type)) from.type = i.type;
      if (from.made_by >= 0) give(from.type, slice.instances[static_cast<size_t>(from.made_by)]);
    }
}

std::string_view operation_of(const vm::ValueSlice& slice, uint32_t n) {
  const vm::SliceInstance& i = slice.instances[n];
  return slice.modules[static_cast<size_t>(i.module)]
      ->functions[static_cast<size_t>(i.function)]
      .body[static_cast<size_t>(i.instruction)]
      .opcode;
}

int64_t input_of(const vm::ValueSlice& slice, uint32_t n) {
  const vm::SliceInstance& i = slice.instances[n];
  int64_t input = -1;
  for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
    if (slice.operands[o].input >= 0) input = slice.operands[o].input;
  return input;
}

SliceLines::SliceLines(const vm::ValueSlice& slice, const ElementSlopes& slopes, const SourceText& source,
                       bool mere)
    : slice_(slice), slopes_(slopes), source_(source), of_instance_(slice.instances.size(), SIZE_MAX) {
  const std::vector<uint64_t> made_of = inputs_behind(slice);
  for (uint32_t n = 0; n < slice.instances.size(); ++n) {
    const vm::SliceInstance& i = slice.instances[n];
    if (!slopes.moves(n) || i.function < 0 || i.instruction < 0 || !carries_value(i.flow)) continue;
    ExplainedLine& line = all[of_instance_[n] = line_of(i)];
    line.nearest = std::min(line.nearest, slopes.nearest[n]);
    line.computes |= computes(i.flow);
    line.reads_only &= input_of(slice, n) >= 0;
    if (i.flow == vm::Flow::load && !std::get<0>(line.read))
      line.read = {slice.modules[static_cast<size_t>(i.module)].get(), i.function, i.instruction};
    line.made_of |= made_of[n];
  }
  for (uint32_t n = 0; n < slice.instances.size(); ++n)
    if (of_instance_[n] != SIZE_MAX && (!mere || !is_mere(n))) all[of_instance_[n]].instances.push_back(n);
}

int32_t SliceLines::copied(uint32_t n) const {
  const vm::SliceInstance& i = slice_.instances[n];
  return computes(i.flow) || i.operand_count != 1 ? -1 : slice_.operands[i.first_operand].made_by;
}
/// Made on another line of the source, for nothing else; or on this one, where it stands already.
bool SliceLines::is_mere(uint32_t n) {
  const size_t own = of_instance_[n];
  const int32_t first = copied(n);
  for (int32_t made = first; made >= 0; made = copied(static_cast<uint32_t>(made))) {
    const size_t maker = of_instance_[static_cast<size_t>(made)];
    if (maker == SIZE_MAX || !slopes_.alike(n, static_cast<size_t>(made))) return false;
    if (maker != own && !all[maker].of_compiler) {
      assigned[of_instance_[static_cast<size_t>(first)]].insert(own);
      return true;
    }
    if (maker == own && computes(slice_.instances[static_cast<size_t>(made)].flow)) return true;
  }
  return false;
}
size_t SliceLines::line_of(const vm::SliceInstance& i) {
  const auto& module = slice_.modules[static_cast<size_t>(i.module)];
  const Site site{module.get(), i.function, i.instruction};
  const auto [known, is_new_site] = of_site_.try_emplace(site, all.size());
  if (!is_new_site) return known->second;
  const SourceLocation where =
      locations_.try_emplace(module.get(), *module).first->second.of(i.function, i.instruction);
  const Place place{where.line > 0 ? where.file : "", where.line > 0 ? where.line : where.ptx_line,
                    where.frames};
  const auto [at, is_new] = of_place_.try_emplace(place, all.size());
  if (is_new) {
    all.emplace_back();
    all.back().at = link_of(*module, i.function, i.instruction, source_);
  }
  all[at->second].of_compiler =
      where.line == 0 &&
      module->functions[static_cast<size_t>(i.function)].body[static_cast<size_t>(i.instruction)].line >= 0;
  return known->second = at->second;
}

}  // namespace assay
