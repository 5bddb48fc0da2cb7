#include "src/base/watch/watched_program.h"

#include <algorithm>

#include "src/base/program/steps.h"
#include "src/base/ptx/inlined_frames.h"
#include "src/base/ptx/instruction_text.h"
#include "src/base/vm/opcode.h"

namespace assay::watch {
namespace {

/// No buffer of the machine's own lies there (src/base/vm/memory.h).
constexpr uint64_t kPlace = 0x5a0000000000;

SourceLocation location_of(const ptx::Module& module, const WatchedSite& site) {
  const ptx::Function& function = module.functions[static_cast<size_t>(site.function)];
  const ptx::Instruction& instruction = function.body[static_cast<size_t>(site.instruction)];
  SourceLocation at = vm::written_at(module, instruction);
  at.function = function.name;
  if (instruction.line >= 0) at.frames = ptx::inlined_frames(module, instruction.line);
  return at;
}

}  // namespace

WatchedProgram watched(const Program& program, const WatchOptions& options) {
  WatchedProgram made{program, {}, {}, {}, {}};
  WatchOptions with_address = options;
  if (with_address.buffer_address == 0) with_address.buffer_address = kPlace;
  int32_t sites = 0;
  for (Module& module : made.program.modules) {
    auto parsed = std::make_shared<ptx::Module>(ptx::parse_functions(*module.ptx, module.path));
    WatchedText text = rewritten(*module.ptx, *parsed, with_address, sites);
    module.ptx = std::make_shared<const std::string>(std::move(text.ptx));
    made.modules.push_back({std::move(parsed), std::move(text.sites), sites});
    sites += static_cast<int32_t>(made.modules.back().sites.size());
    made.counts.instructions += text.counts.instructions, made.counts.watched += text.counts.watched;
    made.counts.added += text.counts.added, made.counts.added_aside += text.counts.added_aside;
    made.unwatched.insert(made.unwatched.end(), text.unwatched.begin(), text.unwatched.end());
  }
  const auto bytes = static_cast<int64_t>(buffer_bytes(static_cast<uint64_t>(sites)));
  std::vector<Launch> launches;
  made.program.launches.swap(launches);
  made.program.outputs.push_back({kBufferName, Dtype::u8, {{"byte", bytes}}});
  made.program.places[kBufferName] = with_address.buffer_address;
  made.buffer = Tensor(kBufferName, Dtype::u8, {{"byte", bytes}});
  for (size_t i = 0; i < launches.size(); ++i) {
    add_fill(made.program, {kBufferName, 0}, 4, static_cast<uint32_t>(i), 4);
    made.program.launches.push_back(std::move(launches[i]));
  }
  return made;
}

std::vector<NotedBirth> noted_births(const std::vector<WatchedModule>& modules,
                                     std::span<const std::byte> buffer) {
  std::vector<NotedBirth> births;
  for (const Record& record : records_of(buffer)) {
    const auto of = std::find_if(modules.rbegin(), modules.rend(),
                                 [&](const WatchedModule& m) { return m.first_site <= record.site; });
    const WatchedSite& site = of->sites[static_cast<size_t>(record.site - of->first_site)];
    const ptx::Function& function = of->original->functions[static_cast<size_t>(site.function)];
    const ptx::Instruction& instruction = function.body[static_cast<size_t>(site.instruction)];
    NotedBirth birth;
    birth.where = location_of(*of->original, site);
    birth.instruction = ptx::instruction_text(function, instruction);
    birth.kind = is_division_by_zero(instruction, site, record) ? "division by zero"
                 : was_infinite(site, record)                   ? "infinity became NaN"
                 : record.born == Born::nan                     ? "NaN"
                                                                : "infinity";
    birth.example = example_of(site, record);
    birth.record = record;
    births.push_back(std::move(birth));
  }
  std::stable_sort(births.begin(), births.end(), [](const NotedBirth& a, const NotedBirth& b) {
    return a.record.launch < b.record.launch;
  });
  return births;
}

}  // namespace assay::watch
