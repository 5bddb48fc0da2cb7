#include "src/base/vm/value_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "src/base/numerics/counted_work.h"
#include "src/base/numerics/format.h"
#include "src/base/vm/block_graph.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/slice_scan.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

constexpr int kMostLegs = 3;  ///< how often a full slice goes on
constexpr size_t kMostPlaces = 4096;
/// Of an instance that is put together, and found before, in nanoseconds (counted_work.h).
constexpr double kOfInstance = 600, kOfScanned = 250;

/// Runs the blocks of `set` in order on the program's fresh memory; before(launch, block) prepares the trace
/// for each.
template <class Before>
void replay(PreparedProgram& prepared, const BlockSet& set, SliceTrace& trace, Before before) {
  for (size_t i = 0; i < set.of_launch.size(); ++i) {
    if (set.of_launch[i].empty()) continue;
    auto block = set.of_launch[i].begin();
    run_each(prepared.enter(i), trace, [&](bool) -> std::optional<uint64_t> {
      if (block == set.of_launch[i].end()) return std::nullopt;
      before(static_cast<uint32_t>(i), *block);
      return *block++;
    });
  }
}

/// Logs of the blocks, earliest first; of more than fit the latest.
std::deque<BlockLog> log_blocks(PreparedProgram& prepared, const BlockSet& set, uint64_t limit,
                                bool& truncated) {
  std::deque<BlockLog> logs;
  SliceTrace trace;
  uint64_t bytes = 0;
  const auto count = [&] {
    if (!logs.empty()) bytes += logs.back().bytes();
    while (bytes > limit && logs.size() > 1) {
      bytes -= logs.front().bytes();
      logs.pop_front();
      truncated = true;
    }
  };
  replay(prepared, set, trace, [&](uint32_t, uint64_t) {
    count();
    trace.log_into(&logs.emplace_back());
  });
  count();
  return logs;
}

/// The values of results and register sources, from another replay: nodes' results first, then uses.
struct Values {
  std::vector<uint64_t> of_node, of_use;
};

Values probe_values(PreparedProgram& prepared, const BlockSet& set, const std::deque<BlockLog>& logs,
                    const SliceScan& scan) {
  struct Asked {
    SliceProbe probe;
    uint32_t log, index;
    bool is_use;
  };
  std::vector<Asked> asked;
  for (uint32_t i = 0; i < scan.nodes.size(); ++i) {
    const SliceNode& n = scan.nodes[i];
    if (n.slot != no_slot)
      asked.push_back({{n.record, n.lane, n.half, false, n.wide, n.slot, 0}, n.log, i, false});
    for (uint32_t u = n.first_use; u < n.first_use + n.use_count; ++u) {
      const SliceUse& use = scan.uses[u];
      if (use.slot != no_slot)
        asked.push_back({{n.record, use.lane, use.half, true, use.wide, use.slot, 0}, n.log, u, true});
    }
  }
  std::stable_sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) {
    return a.log != b.log ? a.log < b.log : a.probe.record < b.probe.record;
  });
  std::vector<SliceProbe> probes;
  for (const Asked& a : asked) probes.push_back(a.probe);
  SliceTrace trace;
  size_t log = 0, first = 0;
  replay(prepared, set, trace, [&](uint32_t launch, uint64_t block) {
    if (log < logs.size() && logs[log].launch == launch && logs[log].block == block) {
      size_t last = first;
      while (last < asked.size() && asked[last].log == log) ++last;
      trace.probe(probes.data() + first, probes.data() + last);
      first = last, ++log;
    } else {
      trace.probe(nullptr, nullptr);
    }
  });
  Values values{std::vector<uint64_t>(scan.nodes.size()), std::vector<uint64_t>(scan.uses.size())};
  for (size_t i = 0; i < asked.size(); ++i)
    (asked[i].is_use ? values.of_use : values.of_node)[asked[i].index] = probes[i].bits;
  return values;
}

std::string register_name(const ptx::Instruction& instruction, const ptx::Function& function,
                          const SliceUse& use, bool matrix) {
  if (matrix)
    return use.name % 4 == 2 ? "c" : fmt::format("{}[k={}]", use.name % 4 == 0 ? 'a' : 'b', use.name / 4);
  if (use.slot == no_slot) return "";
  if (use.name >= instruction.operands.size()) return "";
  const ptx::Operand& o = instruction.operands[use.name];
  if (o.kind == ptx::Operand::Kind::reg) return function.registers[static_cast<size_t>(o.reg)].name;
  if (o.kind == ptx::Operand::Kind::immediate)
    return o.bits >> 32 ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits);
  return o.name;
}

/// Instances and operands for the reader, from nodes and uses.
class Assembly {
 public:
  Assembly(const PreparedProgram& prepared, const Program& program, const TensorMap& inputs,
           const SliceScan& scan, const std::deque<BlockLog>& logs, const Values& values)
      : prepared_(prepared), program_(program), inputs_(inputs), scan_(scan), logs_(logs), values_(values) {
    others_ = scan.other_halves;
    std::sort(others_.begin(), others_.end());
    for (const auto& [name, tensor] : inputs) slice_.input_names.push_back(name);
  }

  ValueSlice assemble() {
    count_work(static_cast<double>(scan_.nodes.size()), kOfInstance);
    for (uint32_t i = 0; i < scan_.nodes.size(); ++i) add_instance(i);
    add_factors_in_memory();
    slice_.truncated = scan_.truncated;
    std::sort(slice_.inputs.begin(), slice_.inputs.end());
    slice_.inputs.erase(std::unique(slice_.inputs.begin(), slice_.inputs.end()), slice_.inputs.end());
    return std::move(slice_);
  }
  /// Of an operand of the assembled slice.
  uint32_t use_of(int32_t operand) const { return use_of_operand_[static_cast<size_t>(operand)]; }

 private:
  int32_t module_of(const Code& code) {
    auto& modules = slice_.modules;
    const auto known = std::find(modules.begin(), modules.end(), code.module);
    if (known != modules.end()) return static_cast<int32_t>(known - modules.begin());
    modules.push_back(code.module);
    return static_cast<int32_t>(modules.size()) - 1;
  }

  void add_instance(uint32_t index) {
    const SliceNode& n = scan_.nodes[index];
    const BlockLog& log = logs_[n.log];
    const Op& op = log.code->ops[static_cast<size_t>(n.op)];
    const Launch& launch = program_.launches[log.launch];
    SliceInstance made;
    made.launch = static_cast<int32_t>(log.launch), made.module = module_of(*log.code);
    made.function = op.function, made.instruction = op.instruction;
    const ThreadPlace at = place_of_thread(launch, log.cluster, log.block, uint64_t{n.warp} * 32 + n.lane);
    made.block = at.block, made.thread = at.thread;
    made.record = n.record, made.half = n.half;
    made.flow = log.code->signature(op).flow(), made.type = n.type;
    made.first_operand = static_cast<uint32_t>(slice_.operands.size());
    for (uint32_t u = n.first_use; u < n.first_use + n.use_count; ++u) add_operand(log, op, u);
    for (uint32_t u = n.first_use; u < n.first_use + n.use_count; ++u)
      add_other_halves(u, slice_.operands[made.first_operand + u - n.first_use]);
    made.operand_count = static_cast<uint32_t>(slice_.operands.size()) - made.first_operand;
    made.bits = n.slot != no_slot        ? values_.of_node[index]
                : made.operand_count > 0 ? slice_.operands[made.first_operand].bits
                                         : 0;
    for (uint32_t i = made.first_operand; i < slice_.operands.size(); ++i)
      if (slice_.operands[i].name.empty() && slice_.operands[i].input < 0)
        slice_.operands[i].bits = made.bits;
    slice_.instances.push_back(made);
  }

  /// What a matrix product takes from memory is in no register of the warp that asks for it.
  void add_factors_in_memory() {
    for (size_t o = 0; o < slice_.operands.size(); ++o) {
      SliceOperand& operand = slice_.operands[o];
      const SliceUse& use = scan_.uses[use_of_operand_[o]];
      if (use.slot == no_slot && use.type != ptx::Type::none && operand.made_by >= 0)
        operand.bits = slice_.instances[static_cast<size_t>(operand.made_by)].bits;
    }
  }

  void add_operand(const BlockLog& log, const Op& op, uint32_t index) {
    const SliceUse& use = scan_.uses[index];
    SliceOperand operand;
    if (const ptx::Instruction* const instruction = instruction_of(*log.code, op))
      operand.name = register_name(*instruction, *function_of(*log.code, op), use,
                                   log.code->signature(op).flow() == Flow::matrix);
    operand.type = use.type, operand.bits = values_.of_use[index], operand.made_by = use.node;
    if (use.node < 0) find_source(use, operand);
    slice_.operands.push_back(operand);
    use_of_operand_.push_back(index);
  }

  void add_other_halves(uint32_t index, SliceOperand operand) {
    for (auto other = std::lower_bound(others_.begin(), others_.end(), std::pair{index, INT32_MIN});
         other != others_.end() && other->first == index; ++other) {
      operand.made_by = other->second, operand.source = Source::event, operand.other_half = true;
      slice_.operands.push_back(operand);
      use_of_operand_.push_back(index);
    }
  }

  /// A value that no instance made: literals and special registers, inputs and constants, or nothing at all.
  void find_source(const SliceUse& use, SliceOperand& operand) {
    if (use.constant) {
      operand.source = Source::literal;
      return;
    }
    operand.source = use.cut ? Source::beyond : Source::unwritten;
    if (use.global) {
      const int at = prepared_.memory().find(use.address, 1);
      const Allocation* a = at < 0 ? nullptr : &prepared_.memory().allocations()[static_cast<size_t>(at)];
      const auto input = a ? inputs_.find(a->name) : inputs_.end();
      const bool constant = a && std::any_of(program_.constants.begin(), program_.constants.end(),
                                             [&](const Tensor& t) { return t.name == a->name; });
      if (!a || constant || !is_buffer(use.address)) operand.source = Source::literal;  // parameters too
      if (input != inputs_.end()) {
        add_input(operand, input, a->element_at(use.address - a->base));
      }
    }
    slice_.unwritten |= operand.source == Source::unwritten;
    if (operand.source == Source::unwritten) note_place(use);
  }

  /// Of the operand that comes next.
  void note_place(const SliceUse& use) {
    const auto operand = static_cast<uint32_t>(slice_.operands.size());
    if (slice_.unwritten_places.size() >= kMostPlaces) return;
    if (use.shared) slice_.unwritten_places.push_back({operand, "", use.address});
    const int at = use.global ? prepared_.memory().find(use.address, 1) : -1;
    if (at < 0) return;
    const Allocation& a = prepared_.memory().allocations()[static_cast<size_t>(at)];
    slice_.unwritten_places.push_back({operand, a.name, use.address - a.base});
  }

  /// An element of an input; a gap of a view (-1) is memory that nothing wrote.
  void add_input(SliceOperand& operand, TensorMap::const_iterator input, int64_t element) {
    if (element < 0) return;
    operand.source = Source::input;
    operand.input = int64_t{std::distance(inputs_.begin(), input)} << 40 | element;
    operand.bits = input->second.bits(element);
    slice_.inputs.push_back(operand.input);
  }

  const PreparedProgram& prepared_;
  const Program& program_;
  const TensorMap& inputs_;
  const SliceScan& scan_;
  const std::deque<BlockLog>& logs_;
  const Values& values_;
  std::vector<std::pair<uint32_t, int32_t>> others_;
  ValueSlice slice_;
  std::vector<uint32_t> use_of_operand_;
};

struct OutputPlace {
  uint64_t address = 0;
  uint32_t bytes = 0;
};
/// Fewer where one is of no output.
std::vector<OutputPlace> places_of(const std::vector<OutputElement>& elements, const Program& program,
                                   const PreparedProgram& prepared) {
  std::vector<OutputPlace> places;
  for (const OutputElement& element : elements) {
    const auto declared = std::find_if(program.outputs.begin(), program.outputs.end(),
                                       [&](const ProgramOutput& o) { return o.name == element.output; });
    if (declared == program.outputs.end()) break;
    const auto bytes = static_cast<uint32_t>(format(declared->dtype).bytes);
    places.push_back(
        {prepared.memory().find(element.output)->address() + static_cast<uint64_t>(element.flat) * bytes,
         bytes});
  }
  return places;
}

void add_blocks(BlockSet& all, const BlockSet& more) {
  all.of_launch.resize(std::max(all.of_launch.size(), more.of_launch.size()));
  for (size_t i = 0; i < more.of_launch.size(); ++i) {
    std::vector<uint64_t> both;
    std::set_union(all.of_launch[i].begin(), all.of_launch[i].end(), more.of_launch[i].begin(),
                   more.of_launch[i].end(), std::back_inserter(both));
    all.of_launch[i] = std::move(both);
  }
}

}  // namespace

ValueSlice slice_value(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                       const std::string& output, int64_t flat, const SliceLimits& limits) {
  return slice_values(program, inputs, options, {{output, flat}}, limits);
}

ValueSlice slice_values(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                        const std::vector<OutputElement>& elements, const SliceLimits& limits) {
  const BlockGraph graph(program, inputs, options);
  if (graph.trapped()) return {};
  bool truncated = false;
  PreparedProgram first(program, inputs, options);
  const std::vector<OutputPlace> places = places_of(elements, program, first);
  if (places.size() != elements.size()) return {};
  BlockSet set;
  for (const OutputPlace& place : places) add_blocks(set, graph.behind(place.address));
  const std::deque<BlockLog> logs = log_blocks(first, set, limits.log_bytes, truncated);
  SliceScan scan(limits);
  for (const OutputPlace& place : places) scan.want(place.address, place.bytes);
  ValueSlice slice;
  size_t next = logs.size();  // blocks that are not scanned to their start
  for (int leg = 0;; ++leg) {
    while (next > 0) {
      scan.scan(logs[next - 1], static_cast<uint32_t>(next - 1));
      if (scan.truncated) break;
      --next;
    }
    count_work(static_cast<double>(scan.nodes.size()), kOfScanned);
    truncated |= scan.truncated;
    if (truncated && elements.size() > 1) {  // of the ones everything would be there, of others nothing
      slice.truncated = true;
      return slice;
    }
    PreparedProgram second(program, inputs, options);
    const Values values = probe_values(second, set, logs, scan);
    Assembly assembly(first, program, inputs, scan, logs, values);
    slice = assembly.assemble();
    if (!scan.truncated || leg == kMostLegs || !limits.follow) break;
    const int32_t operand = limits.follow(slice);
    if (operand < 0) break;
    scan.go_on(assembly.use_of(operand));
  }
  for (size_t i = 0; i < places.size(); ++i) slice.roots.push_back(scan.uses[i].node);
  if (elements.size() == 1)
    slice.element_bits = first.take_outputs().at(elements[0].output).bits(elements[0].flat);
  slice.truncated = truncated;
  slice.blocks = set.count(), slice.blocks_of = graph.blocks();
  return slice;
}

}  // namespace assay::vm
