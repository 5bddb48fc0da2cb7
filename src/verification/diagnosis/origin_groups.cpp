#include "src/verification/diagnosis/origin_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "src/verification/diagnosis/origin_kind.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

/// Of every event the origin that walk_back (slice.h) finds, in one pass: events come after those they depend
/// on.
std::vector<int32_t> origins_of_events(const vm::Recording& recording) {
  struct Earliest {
    int32_t birth = INT32_MAX, nan = INT32_MAX, infinity = INT32_MAX;
  };
  std::vector<Earliest> behind(static_cast<size_t>(recording.event_count));
  std::vector<int32_t> origins;
  for (int32_t e = 0; e < recording.event_count; ++e) {
    const vm::EventLinks links = recording.links(e);
    Earliest& at = behind[static_cast<size_t>(e)];
    if (links.born) at.birth = e;
    if (links.outside_nan) at.nan = e;
    if (links.outside_infinity) at.infinity = e;
    for (const int32_t parent : links.parents) {
      const Earliest& from = behind[static_cast<size_t>(parent)];
      at.birth = std::min(at.birth, from.birth), at.nan = std::min(at.nan, from.nan);
      at.infinity = std::min(at.infinity, from.infinity);
    }
    const int32_t found = std::min(at.birth, at.nan);
    origins.push_back(found != INT32_MAX ? found : at.infinity != INT32_MAX ? at.infinity : e);
  }
  return origins;
}

using Key = std::tuple<std::string, std::string, int>;

Key key_of(OriginKind kind, const SourceLocation& where) {
  return {std::string(name_of(kind)), where.file, where.line > 0 ? where.line : -where.ptx_line};
}

struct Group {
  std::pair<std::string, int64_t> example;
  int64_t elements = 0;
  std::vector<std::pair<std::string, int64_t>> of_output;
};

/// Kind and source line of the origin behind an element.
class Keys {
 public:
  explicit Keys(const vm::Recording& recording) : recording_(recording) {}

  const Key& of_event(int32_t origin) {
    const auto [at, is_new] = of_event_.try_emplace(origin);
    if (is_new) {
      const vm::Event e = recording_.event_without_inputs(origin);
      const ptx::Module& module = *recording_.modules[static_cast<size_t>(e.module)];
      const ptx::Form& form =
          module.functions[static_cast<size_t>(e.function)].body[static_cast<size_t>(e.instruction)].form;
      at->second = key_of(origin_kind(form, e), location_of(module, e.function, e.instruction));
    }
    return at->second;
  }
  /// An element that no event stands behind: copied from an input, a literal, or never written.
  Key of_copy(const std::string& output, int64_t flat) const {
    const vm::Carrier c = recording_.carrier(output, flat);
    SourceLocation where;
    if (c.instruction >= 0)
      where = location_of(*recording_.modules[static_cast<size_t>(c.module)], c.function, c.instruction);
    return key_of(kind_of(c.source), where);
  }

 private:
  const vm::Recording& recording_;
  std::map<int32_t, Key> of_event_;
};

}  // namespace

AllOrigins find_all_origins(const Program& plan, const TensorMap& inputs, const OriginOptions& options,
                            bool groups_too) {
  vm::Recording recording;
  const Outcome outcome = vm::run_recorded(plan, inputs, options.machine, &recording);
  const std::vector<int32_t> origins = origins_of_events(recording);
  Keys keys(recording);
  std::map<Key, Group> groups;
  AllOrigins all;
  int32_t earliest = INT32_MAX;
  for (const ProgramOutput& declared : plan.outputs) {
    const auto found = outcome.outputs.find(declared.name);
    if (found == outcome.outputs.end()) continue;
    for (int64_t flat = 0; flat < found->second.size(); ++flat) {
      if (std::isfinite(found->second.value(flat))) continue;
      const int32_t event = recording.carrier_event(declared.name, flat);
      const int32_t origin = event < 0 ? INT32_MAX : origins[static_cast<size_t>(event)];
      if (!all.first || origin < earliest) earliest = origin, all.first = {declared.name, flat};
      if (!groups_too) continue;
      Group& group = groups[event < 0 ? keys.of_copy(declared.name, flat) : keys.of_event(origin)];
      if (group.elements++ == 0) group.example = {declared.name, flat};
      if (group.of_output.empty() || group.of_output.back().first != declared.name)
        group.of_output.emplace_back(declared.name, 0);
      ++group.of_output.back().second;
    }
  }
  OriginOptions quick = options;
  quick.nearest_inputs = 0;
  for (const auto& [key, group] : groups) {
    const auto trace = describe_origin(plan, inputs, recording, outcome.outputs, group.example.first,
                                       group.example.second, quick);
    if (!trace) continue;
    all.groups.push_back({trace->origin, group.elements, {}});
    for (const auto& [output, count] : group.of_output)
      all.groups.back().outputs.push_back(fmt::format("{} {}", output, count));
  }
  std::stable_sort(all.groups.begin(), all.groups.end(),
                   [](const OriginGroup& a, const OriginGroup& b) { return a.elements > b.elements; });
  return all;
}

}  // namespace assay
