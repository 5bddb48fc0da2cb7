#include "src/verification/compare/output_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace assay {
namespace {

constexpr int64_t kBlockRows = 64;

bool is_heads(const Axis& axis) {
  return axis.name.starts_with("H");
}

}  // namespace

OutputBlocks::OutputBlocks(const std::string& name, const std::vector<Axis>& axes,
                           const std::vector<int64_t>& cu_seqlens)
    : name_(name) {
  std::vector<int64_t> rows;  // of each sequence or state
  size_t next = 0;
  const auto count = [&](size_t from) {
    int64_t product = 1;
    for (size_t i = from; i < axes.size(); ++i) product *= axes[i].size;
    return product;
  };
  tokens_ = axes.size() >= 2 && axes[0].name == "B" && axes[1].name == "T";
  const bool states = axes.size() >= 3 && axes[0].name == "N" && is_heads(axes[1]);
  if (tokens_) {
    const bool packed = cu_seqlens.size() > 1;
    const int64_t sequences = packed ? static_cast<int64_t>(cu_seqlens.size()) - 1 : axes[0].size;
    for (int64_t n = 0; n < sequences; ++n) {
      const auto i = static_cast<size_t>(n);
      first_rows_.push_back(packed ? cu_seqlens[i] : n * axes[1].size);
      rows.push_back(packed ? cu_seqlens[i + 1] - cu_seqlens[i] : axes[1].size);
    }
    next = 2;
  } else if (states) {
    for (int64_t n = 0; n < axes[0].size; ++n) first_rows_.push_back(n), rows.push_back(axes[2].size);
    next = 1;
  } else {
    columns_ = axes.empty() ? 1 : axes.back().size;
    first_rows_.push_back(0), rows.push_back(columns_ > 0 ? count(0) / columns_ : 0);
  }
  if ((tokens_ || states) && next < axes.size() && is_heads(axes[next])) heads_ = axes[next++].size;
  if (tokens_ || states) columns_ = count(states ? 3 : next);
  for (size_t n = 0; n < rows.size(); ++n)
    for (int64_t h = 0; h < heads_; ++h)
      for (int64_t first = 0; first < rows[n]; first += kBlockRows)
        blocks_.push_back(
            {static_cast<int64_t>(n), h, first, std::min(kBlockRows, rows[n] - first), rows[n]});
}

int64_t OutputBlocks::row(const OutputBlock& b, int64_t r) const {
  const int64_t first = first_rows_[static_cast<size_t>(b.sequence)];
  if (tokens_) return ((first + b.first + r) * heads_ + b.head) * columns_;
  return ((first * heads_ + b.head) * b.of + b.first + r) * columns_;
}

const OutputBlock* OutputBlocks::find(int64_t sequence, int64_t head, int64_t first) const {
  const auto place = [](const OutputBlock& b) { return std::tuple(b.sequence, b.head, b.first); };
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), std::tuple(sequence, head, first),
                                   [&](const OutputBlock& b, const auto& asked) { return place(b) < asked; });
  return at != blocks_.end() && place(*at) == std::tuple(sequence, head, first) ? &*at : nullptr;
}

std::vector<OutputPart> OutputBlocks::parts() const {
  std::vector<OutputPart> parts;
  OutputPart late{fmt::format("{} of the last quarter of the tokens", name_), {}, true},
      all{name_, {}, false};
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<size_t>> quarters;  // sequence, head; -1: all
  const char* const unit = tokens_ ? "tokens" : "rows";
  const auto where = [&](int64_t first, int64_t last, const OutputBlock& b) {
    return fmt::format("{} of {} {} to {}, head {}, sequence {}", name_, unit, first, last, b.head,
                       b.sequence);
  };
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const OutputBlock& b = blocks_[i];
    const int64_t quarter = 4 * b.first / b.of;
    parts.push_back({where(b.first, b.first + b.rows - 1, b), {i}, tokens_ && quarter == 3});
    all.blocks.push_back(i);
    if (tokens_ && quarter == 3) late.blocks.push_back(i);
    if (b.of > kBlockRows) quarters[{b.sequence, b.head, -1}].push_back(i);
    if (b.of > 4 * kBlockRows) quarters[{b.sequence, b.head, quarter}].push_back(i);
  }
  for (const auto& [key, blocks] : quarters) {
    if (blocks.size() < 2) continue;
    const OutputBlock &first = blocks_[blocks.front()], &last = blocks_[blocks.back()];
    parts.push_back(
        {where(first.first, last.first + last.rows - 1, first), blocks, tokens_ && std::get<2>(key) == 3});
  }
  if (late.blocks.size() > 1) parts.push_back(std::move(late));
  parts.push_back(std::move(all));
  return parts;
}

}  // namespace assay
