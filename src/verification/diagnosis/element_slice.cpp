#include "src/verification/diagnosis/element_slice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/origin_kind.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

using ptx::Operation;

constexpr size_t kNodesListed = 1 << 14;
constexpr size_t kOperandsShown = 4;
constexpr int kLongestLoop = 12;  // source lines in a loop that the chain folds

double value_of(ptx::Type type, uint64_t bits) {
  return ptx::is_float(type) ? vm::value_of(type, bits) : 0;
}

std::string type_text(ptx::Type type) {
  if (type == ptx::Type::f16x2) return "f16";
  if (type == ptx::Type::bf16x2) return "bf16";
  return type == ptx::Type::none ? "" : std::string(ptx::name_of(type));
}

const ptx::Instruction* instruction_of(const vm::ValueSlice& s, const vm::SliceInstance& i) {
  if (i.function < 0 || i.instruction < 0) return nullptr;
  return &s.modules[static_cast<size_t>(i.module)]
              ->functions[static_cast<size_t>(i.function)]
              .body[static_cast<size_t>(i.instruction)];
}

/// Distance from 1 in binades; zero is furthest.
double distance_from_one(double x) {
  return x == 0 ? INFINITY : std::fabs(std::log2(std::fabs(x)));
}

/// Operands that are added: (first, count of factors).
std::vector<std::pair<int32_t, int32_t>> terms_of(Operation operation, int32_t count) {
  std::vector<std::pair<int32_t, int32_t>> terms;
  const bool fused = operation == Operation::fma || operation == Operation::mad;
  if (fused || vm::is_matrix_product(operation)) {
    for (int32_t i = 0; i + 1 < count; i += 2) terms.emplace_back(i, 2);
    if (count % 2) terms.emplace_back(count - 1, 1);
  } else if (operation == Operation::mul || operation == Operation::div) {
    terms.emplace_back(0, count);
  } else {
    for (int32_t i = 0; i < count; ++i) terms.emplace_back(i, 1);
  }
  return terms;
}

/// Names source lines once.
class LineTable {
 public:
  LineTable(const vm::ValueSlice& slice, const SourceText& source) : slice_(slice), source_(source) {}

  int64_t of(const vm::SliceInstance& i) {
    const std::array<int32_t, 3> site{i.module, i.function, i.instruction};
    const auto known = of_site_.find(site);
    if (known != of_site_.end()) return known->second;
    const ChainLink link =
        link_of(*slice_.modules[static_cast<size_t>(i.module)], i.function, i.instruction, source_);
    const std::pair<std::string, int> key{link.where.line > 0 ? link.where.file : "",
                                          link.where.line > 0 ? link.where.line : link.where.ptx_line};
    const auto [at, is_new] = of_line_.try_emplace(key, static_cast<int64_t>(lines.size()));
    if (is_new) lines.push_back({link, 0, INFINITY, 0, {}});
    links_[site] = link;
    of_site_[site] = at->second;
    return at->second;
  }
  const ChainLink& link(const vm::SliceInstance& i) {
    of(i);
    return links_.at({i.module, i.function, i.instruction});
  }

  std::vector<SliceLine> lines;

 private:
  const vm::ValueSlice& slice_;
  const SourceText& source_;
  std::map<std::array<int32_t, 3>, int64_t> of_site_;
  std::map<std::array<int32_t, 3>, ChainLink> links_;
  std::map<std::pair<std::string, int>, int64_t> of_line_;
};

/// The operands that are floats, of more than kOperandsShown those of the term that holds `deciding` and c.
std::vector<OriginOperand> operands_of(const vm::ValueSlice& s, const vm::SliceInstance& i,
                                       int32_t deciding) {
  std::vector<OriginOperand> operands, term;
  const uint32_t pair = (static_cast<uint32_t>(deciding) - i.first_operand) / 2;
  for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
    const vm::SliceOperand& from = s.operands[o];
    if (!ptx::is_float(from.type) || from.other_half) continue;
    operands.push_back({from.name, type_text(from.type), value_of(from.type, from.bits), from.bits});
    if ((o - i.first_operand) / 2 == pair || from.name == "c") term.push_back(operands.back());
  }
  return operands.size() > kOperandsShown && deciding >= 0 ? term : operands;
}

bool computes(const vm::ValueSlice& s, const vm::SliceInstance& i) {
  const bool narrows = i.flow == vm::Flow::conversion && i.operand_count > 0 &&
                       ptx::is_float(s.operands[i.first_operand].type);
  return (i.flow == vm::Flow::arithmetic || i.flow == vm::Flow::matrix || i.flow == vm::Flow::atomic ||
          narrows) &&
         ptx::is_float(i.type);
}

/// Steps from the output back, one per run of instances on a line: of a run the computing instance nearest
/// the output stands for it, of a tensor-core sum with the two factors of the deciding term and c.
std::vector<SliceStep> steps_back(const vm::ValueSlice& s, LineTable& table) {
  const std::vector<bool> computed = computed_instances(s);
  std::vector<SliceStep> steps;
  int64_t line = -1;
  bool shown = false;
  for (int32_t at = 0; at >= 0;) {
    const vm::SliceInstance& i = s.instances[static_cast<size_t>(at)];
    const int32_t deciding = deciding_operand(s, i, computed);
    const int64_t here = table.of(i);
    const bool is_new = here != line;
    if (is_new || (!shown && computes(s, i))) {
      const SliceStep step{table.link(i),
                           operands_of(s, i, deciding),
                           value_of(i.type, i.bits),
                           type_text(i.type),
                           i.block,
                           i.thread,
                           1};
      if (is_new)
        steps.push_back(step);
      else
        steps.back() = step;
      shown = computes(s, i);
    }
    line = here;
    at = deciding < 0 ? -1 : s.operands[static_cast<size_t>(deciding)].made_by;
  }
  return steps;
}

bool same_place(const SliceStep& a, const SliceStep& b) {
  return a.at.where.line == b.at.where.line && a.at.where.file == b.at.where.file &&
         (a.at.where.line > 0 || a.at.where.ptx_line == b.at.where.ptx_line);
}

/// Loops folded: a sequence of lines that comes three times or more stands once, with its count.
std::vector<SliceStep> fold_loops(const std::vector<SliceStep>& steps) {
  std::vector<SliceStep> folded;
  for (size_t i = 0; i < steps.size();) {
    size_t length = 1, rounds = 1;
    for (size_t l = 1; l <= kLongestLoop && rounds < 3; ++l) {
      size_t same = 0;
      while (i + l + same < steps.size() && same_place(steps[i + same], steps[i + l + same])) ++same;
      if (same / l + 1 >= 3) length = l, rounds = same / l + 1;
    }
    for (size_t j = 0; j < length; ++j) {
      folded.push_back(steps[i + j]);
      folded.back().times = static_cast<int64_t>(rounds);
    }
    i += length * rounds;
  }
  std::reverse(folded.begin(), folded.end());
  return folded;
}

void count_lines(const vm::ValueSlice& s, LineTable& table) {
  std::map<std::array<int32_t, 3>, std::pair<int64_t, int32_t>> of_site;
  std::vector<std::set<int64_t>> from;
  for (size_t n = 0; n < s.instances.size(); ++n) {
    const vm::SliceInstance& i = s.instances[n];
    const int64_t here = table.of(i);
    SliceLine& line = table.lines[static_cast<size_t>(here)];
    ++line.instances;
    auto& [count, example] = of_site[{i.module, i.function, i.instruction}];
    ++count, example = static_cast<int32_t>(n);
    const double x = std::fabs(value_of(i.type, i.bits));
    if (ptx::is_float(i.type) && std::isfinite(x))
      line.smallest = std::min(line.smallest, x), line.largest = std::max(line.largest, x);
    from.resize(table.lines.size());
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (s.operands[o].made_by >= 0) {
        const int64_t source = table.of(s.instances[static_cast<size_t>(s.operands[o].made_by)]);
        from.resize(table.lines.size());
        if (source != here) from[static_cast<size_t>(here)].insert(source);
      }
  }
  std::vector<int64_t> most(table.lines.size());
  for (const auto& [site, seen] : of_site) {
    const vm::SliceInstance& i = s.instances[static_cast<size_t>(seen.second)];
    const auto line = static_cast<size_t>(table.of(i));
    if (seen.first > most[line]) most[line] = seen.first, table.lines[line].at = table.link(i);
  }
  for (size_t i = 0; i < table.lines.size(); ++i) {
    SliceLine& line = table.lines[i];
    line.from.assign(from[i].begin(), from[i].end());
    if (line.smallest > line.largest) line.smallest = line.largest = 0;
  }
}

/// Sorts the lines by their instances; returns the new index of each.
std::vector<int64_t> sort_lines(std::vector<SliceLine>& lines) {
  std::vector<size_t> order(lines.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lines[a].instances > lines[b].instances; });
  std::vector<int64_t> renamed(lines.size());
  std::vector<SliceLine> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    renamed[order[i]] = static_cast<int64_t>(i);
    sorted.push_back(std::move(lines[order[i]]));
  }
  for (SliceLine& line : sorted)
    for (int64_t& from : line.from) from = renamed[static_cast<size_t>(from)];
  lines = std::move(sorted);
  return renamed;
}

std::vector<SliceInput> inputs_of(const vm::ValueSlice& s, const TensorMap& inputs) {
  std::map<int64_t, SliceInput> found;
  for (const int64_t packed : s.inputs) {  // sorted: elements of one input ascend
    const Tensor& tensor = inputs.at(s.input_names[static_cast<size_t>(packed >> 40)]);
    const int64_t flat = packed & ((int64_t{1} << 40) - 1);
    SliceInput& in = found[packed >> 40];
    const std::string element = tensor.element_name(flat);
    const double x = tensor.value(flat);
    if (in.elements++ == 0) in.input = tensor.name, in.first = in.largest = element, in.value = x;
    in.last = element;
    if ((std::isnan(x) && !std::isnan(in.value)) || std::fabs(x) > std::fabs(in.value))
      in.largest = element, in.value = x;
  }
  std::vector<SliceInput> list;
  for (auto& [ordinal, in] : found) list.push_back(std::move(in));
  return list;
}

OperandSource source_of(vm::Source source) {
  switch (source) {
    case vm::Source::input:
      return OperandSource::input;
    case vm::Source::unwritten:
      return OperandSource::unwritten_memory;
    case vm::Source::beyond:
      return OperandSource::beyond;
    default:
      return OperandSource::literal;
  }
}

SliceNode node_of(const vm::ValueSlice& s, const vm::SliceInstance& i, LineTable& table,
                  const TensorMap& inputs) {
  SliceNode node{table.of(i), "", type_text(i.type), i.bits, value_of(i.type, i.bits), i.block, i.thread, {}};
  node.instruction = table.link(i).instruction;
  for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
    const vm::SliceOperand& from = s.operands[o];
    SliceNodeOperand operand{from.name,    type_text(from.type), from.bits,
                             from.made_by, OperandSource::made,  ""};
    if (from.made_by < 0) operand.source = source_of(from.source);
    if (from.made_by >= static_cast<int32_t>(kNodesListed)) operand.made_by = -1;
    if (from.input >= 0)
      operand.input = inputs.at(s.input_names[static_cast<size_t>(from.input >> 40)])
                          .element_name(from.input & ((int64_t{1} << 40) - 1));
    node.operands.push_back(std::move(operand));
  }
  return node;
}

}  // namespace

std::vector<bool> computed_instances(const vm::ValueSlice& s) {
  std::vector<bool> computed(s.instances.size());
  for (size_t n = s.instances.size(); n-- > 0;) {  // producers stand behind their consumers
    const vm::SliceInstance& i = s.instances[n];
    const ptx::Instruction* in = instruction_of(s, i);
    computed[n] = computes(s, i) && in && in->form.operation != Operation::cvt;
    for (uint32_t o = i.first_operand; !computed[n] && o < i.first_operand + i.operand_count; ++o)
      computed[n] = s.operands[o].made_by >= 0 && computed[static_cast<size_t>(s.operands[o].made_by)];
  }
  return computed;
}

int32_t deciding_operand(const vm::ValueSlice& s, const vm::SliceInstance& i,
                         const std::vector<bool>& computed) {
  if (i.operand_count == 0) return -1;
  const ptx::Instruction* in = instruction_of(s, i);
  const Operation operation = in ? in->form.operation : Operation::none;
  const vm::SliceOperand* o = &s.operands[i.first_operand];
  const auto first = static_cast<int32_t>(i.first_operand);
  auto count = static_cast<int32_t>(i.operand_count);
  while (count > 1 && o[count - 1].other_half) --count;
  const auto value = [&](int32_t k) { return value_of(o[k].type, o[k].bits); };
  const double result = value_of(i.type, i.bits);
  for (int32_t k = 0; k < count && std::isnan(result); ++k)
    if (std::isnan(value(k))) return first + k;
  for (int32_t k = 0; k < count && !std::isfinite(result); ++k)
    if (std::isinf(value(k))) return first + k;
  if (operation == Operation::min || operation == Operation::max)
    for (int32_t k = 0; k < count; ++k)
      if (value(k) == result) return first + k;
  if (!ptx::is_float(o[0].type))  // carries bits: of several halves the first operand holds the highest
    return first;
  const auto rank = [&](int32_t k) {
    const bool made = o[k].made_by >= 0 && computed[static_cast<size_t>(o[k].made_by)];
    return std::pair{made, distance_from_one(value(k))};
  };
  int32_t best = 0;
  double largest = -1;
  for (const auto& [from, factors] : terms_of(operation, count)) {
    double size = 1;
    for (int32_t k = from; k < from + factors; ++k) size *= std::fabs(value(k));
    if (operation == Operation::div) size = 1;
    if (!(size > largest)) continue;
    largest = size, best = from;
    for (int32_t k = from + 1; k < from + factors; ++k)
      if (rank(k) > rank(best)) best = k;
  }
  return first + best;
}

namespace {

/// Where the chain of deciding operands leaves a slice that is full; -1: it ends within.
int32_t frontier(const vm::ValueSlice& s) {
  const std::vector<bool> computed = computed_instances(s);
  for (int32_t at = 0; at >= 0;) {
    const int32_t deciding = deciding_operand(s, s.instances[static_cast<size_t>(at)], computed);
    if (deciding < 0) return -1;
    const vm::SliceOperand& operand = s.operands[static_cast<size_t>(deciding)];
    if (operand.made_by < 0) return operand.source == vm::Source::beyond ? deciding : -1;
    at = operand.made_by;
  }
  return -1;
}

}  // namespace

std::optional<ElementSlice> slice_element(const Program& plan, const TensorMap& inputs,
                                          const vm::MachineOptions& options, const std::string& output,
                                          int64_t flat) {
  const vm::ValueSlice s = vm::slice_value(plan, inputs, options, output, flat, {.follow = frontier});
  if (s.instances.empty()) return std::nullopt;
  const auto declared = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                     [&](const ProgramOutput& o) { return o.name == output; });
  ElementSlice slice;
  Tensor shape;
  shape.name = output, shape.axes = declared->axes;
  slice.element = shape.element_name(flat);
  slice.value = decode(declared->dtype, s.element_bits);
  slice.instances = static_cast<int64_t>(s.instances.size());
  slice.truncated = s.truncated, slice.unwritten = s.unwritten;
  slice.blocks = static_cast<int64_t>(s.blocks), slice.blocks_of = static_cast<int64_t>(s.blocks_of);
  const SourceText source(plan.name);
  LineTable table(s, source);
  slice.chain = fold_loops(steps_back(s, table));
  count_lines(s, table);
  for (size_t i = 0; i < std::min(s.instances.size(), kNodesListed); ++i)
    slice.nodes.push_back(node_of(s, s.instances[i], table, inputs));
  const std::vector<int64_t> renamed = sort_lines(table.lines);
  for (SliceNode& node : slice.nodes) node.line = renamed[static_cast<size_t>(node.line)];
  slice.lines = std::move(table.lines);
  slice.inputs = inputs_of(s, inputs);
  return slice;
}

}  // namespace assay
