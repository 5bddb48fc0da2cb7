#include "src/verification/diagnosis/unwritten_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "src/base/program/source_place.h"
#include "src/base/vm/store_search.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/deciding_statements.h"
#include "src/verification/diagnosis/index_maker.h"
#include "src/verification/diagnosis/store_address.h"

namespace assay {
namespace {

constexpr size_t kMostPlaces = size_t{1} << 20;

using Block = std::array<uint32_t, 3>;

/// Who stored twice in one place of the buffer within a launch, not to add there.
enum class Overlap : uint8_t { none, of_thread, of_block, of_blocks };

Overlap overlap_of(const vm::PlacedInstruction& first, const vm::PlacedInstruction& now) {
  if (first.launch != now.launch) return Overlap::none;
  return first.block != now.block     ? Overlap::of_blocks
         : first.thread != now.thread ? Overlap::of_block
                                      : Overlap::of_thread;
}

/// Which stores a run made into the buffer.
struct Written {
  std::map<uint64_t, vm::PlacedInstruction> by;  ///< by offset, the first
  std::set<std::pair<int32_t, Block>> blocks;
  std::set<std::array<int32_t, 3>> instructions;  ///< launch, function, instruction
  Overlap overlap = Overlap::none;                ///< the farthest apart

  bool leaves_out_blocks(const Program& program, int32_t launch) const {
    const auto& grid = program.launches[static_cast<size_t>(launch)].grid;
    const auto count =
        std::count_if(blocks.begin(), blocks.end(), [&](const auto& block) { return block.first == launch; });
    return count > 0 && static_cast<uint64_t>(count) < uint64_t{grid[0]} * grid[1] * grid[2];
  }
  const vm::PlacedInstruction* nearest(uint64_t offset) const {
    const auto after = by.lower_bound(offset);
    if (after == by.begin()) return after == by.end() ? nullptr : &after->second;
    const auto before = std::prev(after);
    if (after == by.end() || offset - before->first <= after->first - offset) return &before->second;
    return &after->second;
  }
};

bool overwrites(const vm::PlacedInstruction& at) {
  const ptx::Function& f = at.module->functions[static_cast<size_t>(at.function)];
  const ptx::Operation is = f.body[static_cast<size_t>(at.instruction)].form.operation;
  return is != ptx::Operation::red && is != ptx::Operation::atom;
}

std::optional<Written> written_by(const Program& program, const TensorMap& inputs,
                                  const vm::MachineOptions& machine, const std::string& buffer) {
  Written written;
  const bool whole = vm::visit_stores(program, inputs, machine, buffer, [&](const vm::StoreEvent& event) {
    written.blocks.insert({event.at.launch, event.at.block});
    written.instructions.insert({event.at.launch, event.at.function, event.at.instruction});
    if (written.by.size() > kMostPlaces) return;
    const auto [known, fresh] = written.by.emplace(event.offset, event.at);
    if (!fresh && overwrites(event.at))
      written.overlap = std::max(written.overlap, overlap_of(known->second, event.at));
  });
  if (!whole || written.by.size() > kMostPlaces) return std::nullopt;
  return written;
}

class Lines {
 public:
  Lines(const Program& program, const UnwrittenMemory& memory, const SourceText& source)
      : program_(program), memory_(memory), source_(source) {}

  void add_store(const vm::PlacedInstruction& store, const std::string& why) {
    add(link_of(*store.module, store.function, store.instruction, source_), why);
  }
  void add_guard(const vm::WithheldStore& withheld) {
    const vm::PlacedInstruction& guard = withheld.guard;
    add(link_of(*guard.module, guard.function, guard.instruction, source_),
        fmt::format("it kept thread ({}) of block ({}) from the store at {}", fmt::join(guard.thread, ","),
                    fmt::join(guard.block, ","), place(withheld.store)));
  }
  void add_divider(const vm::PlacedInstruction& store) {
    if (const auto link = block_divider(*store.module, store.function, store.instruction, source_))
      add(*link, fmt::format("blocks are dealt out by it, and some write nothing of {}", memory_.buffer));
  }
  /// What moves the address on in a loop, and what makes it; where several blocks meet, of their own first.
  void add_addressing(const vm::PlacedInstruction& store, bool blocks_meet) {
    if (const auto link = address_mover(*store.module, store.function, store.instruction, source_))
      add(*link, fmt::format("it moves the address of {} on", place(store)));
    const auto say = [&](const ChainLink& link) {
      add(link, fmt::format("it makes the address of {}", place(store)));
    };
    if (blocks_meet)
      if (const auto link = block_address_maker(*store.module, store.function, store.instruction, source_))
        say(*link);
    for (const ChainLink& link : makers_above(*store.module, store.function, store.instruction, source_))
      say(link);
    if (const auto link = index_maker(*store.module, store.function, store.instruction, source_)) say(*link);
  }
  void add_loops(const vm::PlacedInstruction& store) {
    for (const ChainLink& link : loop_statements(*store.module, store.function, store.instruction, source_))
      add(link, fmt::format("it decides how often {} is reached", place(store)));
  }
  void add_deciding(const vm::PlacedInstruction& store) {
    for (const ChainLink& link :
         deciding_statements(*store.module, store.function, store.instruction, source_))
      add(link, fmt::format("it decides whether {} is reached", place(store)));
  }
  /// Stores through the buffer's own parameters into which no thread came with it, and what decides that.
  void add_unreached(const Written& written) {
    for (size_t i = 0; i < program_.launches.size(); ++i) {
      const Launch& launch = program_.launches[i];
      for (size_t p = 0; p < launch.arguments.size(); ++p)
        for (const Relocation& r : launch.arguments[p].relocations)
          if (r.to.buffer == memory_.buffer)
            add_unreached(written, static_cast<int32_t>(i), static_cast<int32_t>(p), r.at);
    }
  }
  std::vector<SuspectLine> take() { return std::move(lines_); }

 private:
  void add_unreached(const Written& written, int32_t launch, int32_t parameter, int64_t offset) {
    const std::string& name = program_.launches[static_cast<size_t>(launch)].function;
    const auto code = parsed(program_.launches[static_cast<size_t>(launch)].module);
    const auto function = std::find_if(code->functions.begin(), code->functions.end(),
                                       [&](const ptx::Function& f) { return f.name == name; });
    if (function == code->functions.end()) return;
    vm::PlacedInstruction store{code, launch, static_cast<int32_t>(function - code->functions.begin())};
    for (const int32_t at : stores_through(*code, store.function, parameter, offset)) {
      store.instruction = at;
      if (!written.instructions.contains({launch, store.function, at})) add_deciding(store);
    }
  }
  std::shared_ptr<const ptx::Module> parsed(const std::string& name) {
    std::shared_ptr<const ptx::Module>& module = modules_[name];
    for (const Module& m : program_.modules)
      if (!module && m.name == name)
        module = std::make_shared<const ptx::Module>(ptx::parse_functions(*m.ptx, m.path));
    if (!module) module = std::make_shared<const ptx::Module>();
    return module;
  }
  std::string place(const vm::PlacedInstruction& at) const {
    return source_place(location_of(*at.module, at.function, at.instruction));
  }
  void add(const ChainLink& link, const std::string& why) {
    const auto same = [&](const SuspectLine& l) {
      return l.at.where.file == link.where.file && l.at.where.line == link.where.line;
    };
    if (link.where.line > 0 && std::none_of(lines_.begin(), lines_.end(), same))
      lines_.push_back({link, why});
  }

  const Program& program_;
  const UnwrittenMemory& memory_;
  const SourceText& source_;
  std::map<std::string, std::shared_ptr<const ptx::Module>> modules_;  ///< parsed, by name
  std::vector<SuspectLine> lines_;
};

}  // namespace

std::vector<SuspectLine> lines_behind_unwritten(const Program& program, const TensorMap& inputs,
                                                const vm::MachineOptions& machine,
                                                const UnwrittenMemory& memory, const SourceText& source,
                                                double seconds) {
  const std::optional<Written> written = written_by(program, inputs, machine, memory.buffer);
  if (!written) return {};
  const vm::PlacedInstruction* const near = written->nearest(memory.offset);
  Lines lines(program, memory, source);
  if (written->overlap != Overlap::none && near) {
    lines.add_store(*near,
                    written->overlap == Overlap::of_thread
                        ? fmt::format("a thread of it writes places of {} twice", memory.buffer)
                        : fmt::format("its threads write places of {} that others write too", memory.buffer));
    lines.add_addressing(*near, written->overlap == Overlap::of_blocks);
    return lines.take();
  }
  // First those that overwrite nothing of others: what does comes there by chance.
  const std::vector<vm::WithheldStore> guards = vm::find_withheld_stores(
      program, inputs, machine, memory.buffer, memory.offset, memory.bytes, {64, seconds});
  const bool kept_away = !guards.empty() && !guards.front().overwrites;
  const vm::PlacedInstruction* const meant = kept_away ? &guards.front().store : near;
  for (const vm::WithheldStore& guard : guards)
    if (!guard.overwrites) lines.add_guard(guard);
  if (!meant) {
    lines.add_unreached(*written);
    return lines.take();
  }
  if (written->leaves_out_blocks(program, meant->launch)) lines.add_divider(*meant);
  if (!kept_away && !guards.empty()) lines.add_guard(guards.front());
  lines.add_loops(*meant);
  if (!kept_away) lines.add_store(*meant, fmt::format("it writes what is nearest of {}", memory.buffer));
  lines.add_addressing(*meant, false);
  return lines.take();
}

}  // namespace assay
