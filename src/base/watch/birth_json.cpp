#include "src/base/watch/birth_json.h"

#include <nlohmann/json.hpp>

#include "src/base/program/source_place.h"

namespace assay::watch {

using nlohmann::json;

json to_json(const WatchCounts& counts) {
  return {{"instructions", counts.instructions},
          {"watched", counts.watched},
          {"added", counts.added},
          {"added_aside", counts.added_aside}};
}

json to_json(const NotedBirth& birth) {
  const Record& r = birth.record;
  return {{"file", birth.where.file},
          {"line", birth.where.line},
          {"ptx_line", birth.where.ptx_line},
          {"place", place_with_ptx_line(birth.where)},
          {"function", birth.where.function},
          {"frames", birth.where.frames},
          {"instruction", birth.instruction},
          {"kind", birth.kind},
          {"example", birth.example},
          {"count", r.count},
          {"launch", r.launch},
          {"nanoseconds", r.nanoseconds},
          {"block", r.block},
          {"thread", r.thread}};
}

}  // namespace assay::watch
