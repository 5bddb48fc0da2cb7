#include "src/case/values.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay {
namespace {

/// Exact cases must fit the narrowest significand in use, bf16's 8 bits, at every intermediate: |q.k| <= kRow
/// for any two rows, and sum |q||k||v| over all tokens plus |q||S_0| <= 4 * 56 + 4 * 4 = 240 < 2^8, so that
/// scores, states and outputs are integers below 256 in any order of summation.
/// Gradients too, in units of the scale (at least 2^-3) where cotangents of states join in: |do_i.v_j| <= 1
/// and at most 48 tokens with a do make |dq| <= 56 + 4, |dk| <= 48 + 8, |dv| <= 4 * 48 + 4 * 8. dg, at most
/// 60 * 56 of these units, is an integer but may round when it is stored. x, where there are no keys: four
/// channels of a token and head are 1 or -1 on writing tokens, so that sums over tokens stay below 56 + 4,
/// and those over up to 12 heads with weights up to 4 below 256.
/// Operators that remove from their state (Role::opposed) have gradients that are products of two states,
/// |da|, |db| <= sum_j |S_cj| |G_ij|: 10 + 4 times 10 + 8 where at most 10 tokens write and as many read.
constexpr int64_t kRow = 4, kWritingTokens = 56, kReadingTokens = 48, kFewTokens = 10;

/// Whether channel c is among the kRow channels a row uses (with multiplicity: fewer where two draws agree).
bool in_row(const ValueDraw& d, const Coordinates& row) {
  for (int64_t i = 0; i < kRow; ++i) {
    if (d.random.below(d.channels, row, 10 + i) == d.at.c) return true;
  }
  return false;
}

/// One token in each block of tokens, at most `most` of them in the whole case.
bool is_chosen_token(const ValueDraw& d, int64_t most) {
  const int64_t stride = std::max<int64_t>(1, (d.drawn.T + most - 1) / most);
  const Coordinates block{d.at.b, d.at.t / stride, d.at.h, 0};
  return d.random.below(stride, block, 2) == d.at.t % stride;
}

double draw_exact(const ValueDraw& d) {
  const double sign = d.random.bits(d.at, 1) & 1 ? -1 : 1;
  const Coordinates row{d.at.b, d.at.t, d.at.h, 0};
  if (d.argument == "q" || d.argument == "r" || d.argument == "k") return in_row(d, row) ? sign : 0;
  if (d.argument == "x") return in_row(d, row) && is_chosen_token(d, kWritingTokens) ? sign : 0;
  if (d.argument == "v") {
    if (!is_chosen_token(d, d.removes ? kFewTokens : kWritingTokens)) return 0;
    return sign * static_cast<double>(d.random.below(4, d.at, 3) != 0);
  }
  if (d.argument == "do" || d.argument == "dy") {
    const bool chosen = is_chosen_token(d, d.removes ? kFewTokens : kReadingTokens);
    return chosen && d.random.below(d.channels, row, 5) == d.at.c ? sign : 0;
  }
  if (d.argument == "dfinal_state") {  // one value channel per key channel
    const int64_t V = std::max<int64_t>(1, d.drawn.V);
    const Coordinates key{d.at.b, 0, d.at.h, d.at.c / V};
    return d.random.below(V, key, 6) == d.at.c % V ? sign : 0;
  }
  return static_cast<double>(d.random.below(9, d.at, 4)) - 4;
}

double draw_one_hot(const ValueDraw& d) {
  if (d.argument != "q" && d.argument != "r" && d.argument != "k") return d.random.normal(d.at);
  const Coordinates row{d.at.b, d.at.t, d.at.h, 0};
  if (d.random.below(d.channels, row, 1) != d.at.c) return 0.0;
  static constexpr double kSizes[] = {-2, -1, -0.5, 0.5, 1, 2};
  return kSizes[d.random.below(std::size(kSizes), row, 2)];
}

double draw_normal(const ValueDraw& d) {
  return d.random.normal(d.at);
}
void draw_normals(const ValueDraw& d, int64_t count, double* out) {
  d.random.normals(d.at, count, out);
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
