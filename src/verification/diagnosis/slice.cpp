#include "src/verification/diagnosis/slice.h"

#include <algorithm>
#include <unordered_map>

namespace assay {

WalkBack walk_back(const vm::Recording& recording, int32_t last) {
  std::unordered_map<int32_t, int32_t> child;  // event -> the event that it was reached from
  std::vector<int32_t> open{last};
  child.emplace(last, -1);
  int32_t birth = -1, outside_nan = -1, outside_infinity = -1;
  auto keep_earliest = [](int32_t& earliest, int32_t event) {
    if (earliest < 0 || event < earliest) earliest = event;
  };
  for (size_t next = 0; next < open.size(); next++) {  // breadth first: the path is a shortest one
    const int32_t event = open[next];
    const vm::EventLinks links = recording.links(event);
    if (links.born) keep_earliest(birth, event);
    if (links.outside_nan) keep_earliest(outside_nan, event);
    if (links.outside_infinity) keep_earliest(outside_infinity, event);
    for (int32_t parent : links.parents)
      if (child.emplace(parent, event).second) open.push_back(parent);
  }
  WalkBack slice;
  slice.from_outside = birth < 0 || (outside_nan >= 0 && outside_nan < birth);
  slice.origin = !slice.from_outside ? birth : outside_nan >= 0 ? outside_nan : outside_infinity;
  for (int32_t event = slice.origin; event >= 0; event = child.at(event)) slice.path.push_back(event);
  return slice;
}

}  // namespace assay
