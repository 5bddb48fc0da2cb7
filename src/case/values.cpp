#include "src/case/values.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/case/names.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

/// Exact cases must fit the narrowest significand in use, bf16's 8 bits, at every intermediate: |q.k| <= kRow
/// for any two rows, and sum |q||k||v| over all tokens plus |q||S_0| <= 4 * 56 + 4 * 4 = 240 < 2^8, so that
/// scores, states and outputs are integers below 256 in any order of summation.
constexpr int64_t kRow = 4, kWritingTokens = 56;

/// Whether channel c is among the kRow channels a row uses (with multiplicity: fewer where two draws agree).
bool in_row(const ValueDraw& d, const Coordinates& row) {
  for (int64_t i = 0; i < kRow; ++i) {
    if (d.random.below(d.channels, row, 10 + i) == d.at.c) return true;
  }
  return false;
}

double draw_exact(const ValueDraw& d) {
  const double sign = d.random.bits(d.at, 1) & 1 ? -1 : 1;
  const Coordinates row{d.at.b, d.at.t, d.at.h, 0};
  if (d.argument == "q" || d.argument == "k") return in_row(d, row) ? sign : 0;
  if (d.argument == "v") {
    // One token in each block of `stride` writes: at most kWritingTokens of them in the whole case.
    const int64_t stride = std::max<int64_t>(1, (d.drawn.T + kWritingTokens - 1) / kWritingTokens);
    const Coordinates block{d.at.b, d.at.t / stride, d.at.h, 0};
    if (d.random.below(stride, block, 2) != d.at.t % stride) return 0;
    return sign * static_cast<double>(d.random.below(4, d.at, 3) != 0);
  }
  return static_cast<double>(d.random.below(9, d.at, 4)) - 4;
}

}  // namespace

const std::vector<ValueKind>& value_kinds() {
  static const std::vector<ValueKind> table = {
#include "src/case/values.def"
  };
  return table;
}

const ValueKind& find_values(std::string_view name) {
  const auto& table = value_kinds();
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& v) { return v.name == name; });
  if (row != table.end()) return *row;
  std::vector<std::string> names;
  for (const auto& kind : table) names.emplace_back(kind.name);
  throw BadInput(unknown_name("kind of values", name, names));
}

}  // namespace assay
