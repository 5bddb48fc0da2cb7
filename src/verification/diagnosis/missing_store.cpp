#include "src/verification/diagnosis/missing_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "src/base/numerics/format.h"
#include "src/base/ptx/inlined_frames.h"
#include "src/base/tensor/index_letter.h"
#include "src/base/vm/table_reads.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/index_maker.h"
#include "src/verification/diagnosis/weak_barriers.h"

namespace assay {
namespace {

constexpr size_t kMostElements = size_t{1} << 22;

using Place = std::array<uint32_t, 6>;  ///< block and thread

struct StoreCode {
  std::shared_ptr<const ptx::Module> module;
  int32_t function = -1, instruction = -1;
  auto operator<=>(const StoreCode&) const = default;
};

/// The stores of a run into an output.
struct Stores {
  std::map<StoreCode, int64_t> count;
  std::map<int64_t, Place> writer;  ///< of elements, the first
  /// Some element was written by several threads, or by several statements of one.
  bool overlap = false;
};

std::optional<Stores> stores_into(const Program& plan, const TensorMap& inputs,
                                  const vm::MachineOptions& machine, const ProgramOutput& output) {
  Stores stores;
  std::map<int64_t, int32_t> by;  ///< of elements, the first instruction
  const auto width = static_cast<uint64_t>(format(output.dtype).bytes);
  const bool whole = vm::visit_stores(plan, inputs, machine, output.name, [&](const vm::StoreEvent& event) {
    ++stores.count[{event.at.module, event.at.function, event.at.instruction}];
    if (stores.writer.size() > kMostElements) return;
    Place place{};
    std::copy(event.at.block.begin(), event.at.block.end(), place.begin());
    std::copy(event.at.thread.begin(), event.at.thread.end(), place.begin() + 3);
    for (uint64_t at = event.offset / width; at < (event.offset + event.bytes + width - 1) / width; ++at) {
      const auto [first, fresh] = stores.writer.emplace(static_cast<int64_t>(at), place);
      const int32_t instruction = by.emplace(static_cast<int64_t>(at), event.at.instruction).first->second;
      stores.overlap |= !fresh && (first->second != place || instruction != event.at.instruction);
    }
  });
  if (!whole || stores.writer.size() > kMostElements) return std::nullopt;
  return stores;
}

/// Of an axis along which no store reaches the element's index the indices that they do reach: "v = 0..31".
std::string reach_of(const Stores& stores, const ProgramOutput& output, int64_t flat) {
  Tensor shape;  // names indices; holds nothing
  shape.axes = output.axes;
  const std::vector<int64_t> wanted = shape.index(flat);
  for (size_t axis = output.axes.size(); axis-- > 0;) {
    std::set<int64_t> reached;
    for (const auto& [element, writer] : stores.writer) reached.insert(shape.index(element)[axis]);
    if (reached.contains(wanted[axis]) || reached.empty()) continue;
    const std::string name = index_letter(output.axes[axis].name);
    const int64_t first = *reached.begin(), last = *reached.rbegin();
    return first == last ? fmt::format("{} = {}", name, first)
                         : fmt::format("{} = {}..{}", name, first, last);
  }
  return "";
}

MissingStore stored_elsewhere(const Stores& stores, const ProgramOutput& output, int64_t flat,
                              const SourceText& source) {
  const auto& code =
      std::max_element(stores.count.begin(), stores.count.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  MissingStore missing;
  missing.why = MissingStore::Why::elsewhere;
  missing.store = link_of(*code.module, code.function, code.instruction, source);
  missing.at = *missing.store;
  missing.reached = reach_of(stores, output, flat);
  if (auto made = index_maker(*code.module, code.function, code.instruction, source))
    missing.at = *std::move(made);
  return missing;
}

std::optional<Place> nearest_writer(const Stores& stores, int64_t flat) {
  const auto after = stores.writer.lower_bound(flat);
  if (after == stores.writer.begin() && after == stores.writer.end()) return std::nullopt;
  if (after == stores.writer.begin()) return after->second;
  const auto before = std::prev(after);
  return after == stores.writer.end() || flat - before->first <= after->first - flat ? before->second
                                                                                     : after->second;
}

/// A block that wrote nothing of the output is the likeliest to lack a store, then the one that wrote the
/// nearest element.
const vm::WithheldStore& likeliest(const std::vector<vm::WithheldStore>& guards, const Stores& stores,
                                   int64_t flat) {
  const auto block_of = [](const Place& place) { return std::array{place[0], place[1], place[2]}; };
  std::set<std::array<uint32_t, 3>> writing;
  for (const auto& [element, place] : stores.writer) writing.insert(block_of(place));
  for (const vm::WithheldStore& g : guards)
    if (!writing.contains(g.store.block)) return g;
  const std::optional<Place> writer = nearest_writer(stores, flat);
  for (const vm::WithheldStore& g : guards)
    if (writer && g.store.block == block_of(*writer)) return g;
  return guards.front();
}

MissingStore guarded(const vm::WithheldStore& withheld, const SourceText& source) {
  MissingStore missing;
  missing.why = MissingStore::Why::guarded;
  missing.at = link_of(*withheld.guard.module, withheld.guard.function, withheld.guard.instruction, source);
  missing.store =
      link_of(*withheld.store.module, withheld.store.function, withheld.store.instruction, source);
  missing.block = withheld.guard.block, missing.thread = withheld.guard.thread;
  return missing;
}

/// The lines that a function's instructions come from, calls around inlined ones included, by file.
std::map<std::string, std::set<int>> lines_of(const ptx::Module& module, const ptx::Function& function) {
  std::map<std::string, std::set<int>> lines;
  for (const ptx::Instruction& in : function.body)
    for (int32_t at = in.line; at >= 0; at = module.lines[static_cast<size_t>(at)].inlined_at) {
      const ptx::Line& line = module.lines[static_cast<size_t>(at)];
      if (line.file < 0) continue;
      const std::string& file = module.files[static_cast<size_t>(line.file)];
      if (!ptx::is_of_toolkit(file)) lines[file].insert(line.line);
    }
  return lines;
}

/// Does the text use the identifier, other than to declare it?
bool uses(const std::string& text, const std::string& name) {
  const std::string code = text.substr(0, text.find("//"));
  for (size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && is_word(code[at - 1])) || (end < code.size() && is_word(code[end]))) continue;
    const size_t before = at == 0 ? std::string::npos : code.find_last_not_of(' ', at - 1);
    const bool declared =
        before != std::string::npos &&
        (code[before] == '*' || code[before] == '&' || code.substr(0, before + 1).ends_with("__restrict__"));
    if (!declared) return true;
  }
  return false;
}

/// Among the lines of the function's code the last that uses the output's pointer and has no instruction.
SourceLocation lost_mention(const ptx::Module& module, const ptx::Function& function,
                            const std::string& output, const SourceText& source) {
  SourceLocation found;
  found.function = function.name;
  for (const auto& [file, lines] : lines_of(module, function))
    for (int line = *lines.begin(); line <= *lines.rbegin(); ++line) {
      SourceLocation at{found};
      at.file = file, at.line = line;
      if (!lines.contains(line) && uses(source.line(at), output)) found = at;
    }
  return found;
}

/// The last line of a launched module's sources that mentions the output and of which no instruction is left.
std::optional<MissingStore> unmentioned(const Program& plan, const std::string& output,
                                        const SourceText& source) {
  std::optional<MissingStore> missing;
  for (const Launch& launch : plan.launches) {
    const bool takes = std::any_of(launch.arguments.begin(), launch.arguments.end(),
                                   [&](const Argument& argument) { return argument.refers_to(output); });
    const auto text = std::find_if(plan.modules.begin(), plan.modules.end(),
                                   [&](const Module& m) { return m.name == launch.module; });
    if (!takes || text == plan.modules.end()) continue;
    const ptx::Module module = ptx::parse_functions(*text->ptx, text->path);
    const auto function = std::find_if(module.functions.begin(), module.functions.end(),
                                       [&](const ptx::Function& f) { return f.name == launch.function; });
    if (function == module.functions.end()) continue;
    missing.emplace();
    missing->at.where = lost_mention(module, *function, output, source);
    missing->at.text = source.line(missing->at.where);
  }
  return missing;
}

}  // namespace

std::optional<MissingStore> find_missing_store(const Program& plan, const TensorMap& inputs,
                                               const vm::MachineOptions& machine, const std::string& output,
                                               int64_t flat, const SourceText& source) {
  const auto declared = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                     [&](const ProgramOutput& o) { return o.name == output; });
  if (declared == plan.outputs.end()) return std::nullopt;
  const std::optional<Stores> stores = stores_into(plan, inputs, machine, *declared);
  if (!stores || stores->writer.contains(flat)) return std::nullopt;
  const auto width = static_cast<uint32_t>(format(declared->dtype).bytes);
  const auto guards =
      vm::find_withheld_stores(plan, inputs, machine, output, static_cast<uint64_t>(flat) * width, width);
  if (!guards.empty() && !stores->overlap) return guarded(likeliest(guards, *stores, flat), source);
  if (!stores->count.empty()) return stored_elsewhere(*stores, *declared, flat, source);
  return unmentioned(plan, output, source);
}

std::optional<MissingStore> find_missing_scratch(const Program& plan, const TensorMap& inputs,
                                                 const vm::MachineOptions& machine,
                                                 const std::string& workspace, uint64_t offset,
                                                 uint32_t bytes, const SourceText& source) {
  bool written = false;
  const bool whole =
      vm::visit_stores(plan, inputs, machine, workspace, [&](const vm::StoreEvent&) { written = true; });
  if (!whole || written) return std::nullopt;
  const auto guards = vm::find_withheld_stores(plan, inputs, machine, workspace, offset, bytes);
  if (guards.empty()) return std::nullopt;
  MissingStore missing = guarded(guards.front(), source);
  if (const auto unread = vm::find_unread_table(plan, inputs, machine, guards.front().guard)) {
    const vm::PlacedInstruction& load = unread->load;
    const auto maker = address_maker(*load.module, load.function, load.instruction, source);
    missing.why = MissingStore::Why::misread, missing.table = unread->table;
    missing.at = maker ? *maker : link_of(*load.module, load.function, load.instruction, source);
  }
  return missing;
}

std::optional<MissingStore> find_missing_shared(const Program& plan, const TensorMap& inputs,
                                                const vm::MachineOptions& machine,
                                                const vm::SharedBytes& place, const SourceText& source,
                                                double seconds) {
  if (const auto writer = vm::store_into(plan, inputs, machine, place)) {
    const std::vector<ChainLink> barriers = barriers_too_weak(plan, inputs, machine, source, seconds);
    if (barriers.empty()) return std::nullopt;
    MissingStore missing;
    missing.why = MissingStore::Why::early;
    missing.at = barriers.front();
    missing.store = link_of(*writer->module, writer->function, writer->instruction, source);
    missing.block = writer->block, missing.thread = writer->thread;
    return missing;
  }
  const auto guards = vm::find_withheld_stores(plan, inputs, machine, place, {64, seconds});
  if (guards.empty() || guards.front().overwrites) return std::nullopt;
  return guarded(guards.front(), source);
}

}  // namespace assay
