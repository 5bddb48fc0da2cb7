#include "src/base/program/block_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "src/base/numerics/bad_input.h"
#include "src/base/program/program.h"

namespace assay {
namespace {

constexpr uint64_t kMostBlocks = uint64_t{1} << 20;

[[noreturn]] void refuse(const std::string& text, std::string_view part, const char* why) {
  throw BadInput(
      fmt::format("blocks '{}': '{}' {}; write them as 0,5,last or 0..3 or last-7..last", text, part, why));
}

uint64_t number(const std::string& text, std::string_view part, std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) refuse(text, part, "is no block number");
  return value;
}

/// A number, "last", or "last-N"; before the first block: none of the grid's.
int64_t position(const std::string& text, std::string_view part, uint64_t blocks) {
  constexpr std::string_view last = "last";
  if (!part.starts_with(last))
    return static_cast<int64_t>(std::min<uint64_t>(number(text, part, part), INT64_MAX));
  part.remove_prefix(last.size());
  const auto end = static_cast<int64_t>(blocks) - 1;
  if (part.empty()) return end;
  if (part[0] != '-') refuse(text, part, "is no block number");
  return end - static_cast<int64_t>(std::min<uint64_t>(number(text, part, part.substr(1)), INT64_MAX));
}

}  // namespace

std::vector<uint64_t> chosen_blocks(const std::string& text, uint64_t blocks) {
  std::vector<uint64_t> chosen;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const size_t dots = part.find("..");
    const int64_t first = position(text, part.substr(0, dots), blocks);
    const int64_t last =
        dots == std::string_view::npos ? first : position(text, part.substr(dots + 2), blocks);
    if (last < first) refuse(text, part, "runs backwards");
    const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, static_cast<int64_t>(blocks) - 1);
    if (to >= from && static_cast<uint64_t>(to - from) + chosen.size() >= kMostBlocks)
      refuse(text, part, "names more than 1048576 blocks");
    for (int64_t block = from; block <= to; ++block) chosen.push_back(static_cast<uint64_t>(block));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

void require_blocks(const std::string& text, const std::vector<uint64_t>& blocks) {
  const auto missing = [&](const std::string& part) {
    return std::all_of(blocks.begin(), blocks.end(),
                       [&](uint64_t all) { return chosen_blocks(part, all).empty(); });
  };
  if (missing(text)) throw BadInput(fmt::format("blocks '{}': no launch has one of them", text));
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    if (!part.starts_with("last") && missing(part))
      throw BadInput(fmt::format("blocks '{}': no launch has {}; the last one of the largest is {}", text,
                                 part, *std::max_element(blocks.begin(), blocks.end()) - 1));
  }
}

void require_blocks(const Program& program) {
  if (program.blocks.empty()) return;
  std::vector<uint64_t> blocks;
  for (const Launch& launch : program.launches)
    blocks.push_back(uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]);
  require_blocks(program.blocks, blocks);
}

}  // namespace assay
