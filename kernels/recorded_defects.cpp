#include "kernels/recorded_defects.h"

#include <algorithm>

namespace assay {
namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace

std::string_view name_of(DefectGroup group) {
  constexpr std::string_view names[] = {"native", "transplanted", "outside"};
  return names[static_cast<int>(group)];
}

const std::vector<RecordedDefect>& recorded_defects() {
  static const std::vector<RecordedDefect> table = {
#define ASSAY_RECORDED(id, group, patches, title, reason) \
  {#id, DefectGroup::group, words(patches), title, reason},
#include "kernels/defects/recorded.def"
#undef ASSAY_RECORDED
  };
  return table;
}

const RecordedDefect* recorded_as(std::string_view patch) {
  for (const RecordedDefect& recorded : recorded_defects())
    if (std::count(recorded.patches.begin(), recorded.patches.end(), patch) > 0) return &recorded;
  return nullptr;
}

}  // namespace assay
