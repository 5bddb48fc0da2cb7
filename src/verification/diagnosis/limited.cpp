// Meanings that hold in a block of channels or heads only: in the last tile of an axis, say.
#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/meaning.h"

namespace assay {
namespace {

/// Indices [first, end) of an axis.
struct Block {
  size_t axis = 0;
  int64_t first = 0, end = 0;
};

bool is_of_channels(const std::string& letter) {
  return letter == "K" || letter == "V" || letter == "M" || letter == "D";
}
bool is_of_heads(const std::string& letter) {
  return letter == "H" || letter == "HV" || letter == "HQ";
}

/// A tile begins and ends at multiples of 8, or at an end of the axis.
bool is_tile(const Block& block, const Axis& axis) {
  constexpr int64_t kTile = 8;
  const bool whole = block.first == 0 && block.end == axis.size;
  return !whole && block.first % kTile == 0 && (block.end == axis.size || block.end % kTile == 0);
}

/// The axes along which wrong elements lie in one block only.
std::vector<Block> wrong_blocks(const OutputComparison& o, const Tensor& t) {
  std::vector<Block> blocks;
  const std::vector<int64_t> strides = t.strides();
  for (size_t axis = 0; axis < t.axes.size(); ++axis) {
    const std::string& letter = t.axes[axis].name;
    if (!is_of_channels(letter) && !is_of_heads(letter)) continue;
    Block block{axis, t.axes[axis].size, 0};
    for (int64_t flat = 0; flat < t.size(); ++flat) {
      const ElementVerdict verdict = o.verdicts[static_cast<size_t>(flat)];
      if (verdict != ElementVerdict::violation && verdict != ElementVerdict::wrong_class) continue;
      const int64_t i = flat / strides[axis] % t.axes[axis].size;
      block.first = std::min(block.first, i), block.end = std::max(block.end, i + 1);
    }
    const bool proper = block.end - block.first < t.axes[axis].size;
    if (is_of_heads(letter) ? proper : is_tile(block, t.axes[axis])) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

std::optional<Prediction> limited_to_wrong_block(const FailingRun& run, const Prediction& prediction,
                                                 std::string& text) {
  Prediction limited = prediction;
  const Prediction right = reference_prediction(run);
  text.clear();
  for (const OutputComparison* o : run.wrong()) {
    const auto found = limited.find(o->name);
    const Tensor& t = run.outputs->at(o->name);
    const std::vector<Block> blocks = wrong_blocks(*o, t);
    if (found == limited.end() || found->second.mid.size() != o->verdicts.size() || blocks.empty()) continue;
    const std::vector<int64_t> strides = t.strides();
    for (int64_t flat = 0; flat < t.size(); ++flat) {
      const bool inside = std::all_of(blocks.begin(), blocks.end(), [&](const Block& b) {
        const int64_t i = flat / strides[b.axis] % t.axes[b.axis].size;
        return i >= b.first && i < b.end;
      });
      const auto i = static_cast<size_t>(flat);
      if (!inside)
        found->second.mid[i] = right.at(o->name).mid[i], found->second.bound[i] = right.at(o->name).bound[i];
    }
    for (const Block& b : blocks)
      text += fmt::format("{}{} {}-{} of {}", text.empty() ? "" : ", ", t.axes[b.axis].name, b.first,
                          b.end - 1, o->name);
  }
  return text.empty() ? std::nullopt : std::optional(limited);
}

}  // namespace assay
