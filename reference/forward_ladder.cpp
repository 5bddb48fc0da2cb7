#include "reference/forward_ladder.h"

#include <algorithm>
#include <cmath>

#include "reference/precise_columns.h"

namespace assay {
namespace {

SliceProblem settings_of(const ForwardProblem& f, const Slice& s) {
  SliceProblem settings;
  settings.slice = s, settings.heads = f.H(), settings.scale = f.problem.scale;
  settings.parameters = f.row.parameters, settings.problem = &f.problem;
  return settings;
}

KeyInputs read_keys(const ForwardProblem& f, const Slice& s) {
  KeyInputs x{s.tokens, f.K(), {}, {}, {}, f.problem.scale};
  x.weight = f.x.fixed_weight(s.h), x.bonus = f.x.read_bonus(s.h), x.exclusive = f.x.exclusive();
  x.settings = settings_of(f, s);
  const auto read = [&](const Tensor& tensor, std::vector<double>& out) {
    out.resize(static_cast<size_t>(s.tokens * f.K()));
    decode_rows(tensor, s.first_row, s.tokens, f.H(), s.h, f.K(), out.data());
  };
  read(f.x.q, x.q), read(f.x.k, x.k);
  if (!f.x.gated()) return x;
  x.g.resize(x.q.size());
  f.x.read_decays(s, 0, s.tokens, x.g.data(), nullptr);
  return x;
}

ColumnInputs read_column(const ForwardProblem& f, const Slice& s, int64_t column) {
  ColumnInputs x;
  x.v.resize(static_cast<size_t>(s.tokens)), x.S0.assign(static_cast<size_t>(f.K()), 0);
  for (int64_t t = 0; t < s.tokens; ++t)
    decode_run(f.x.v, f.output_row(s, t) + column, 1, &x.v[static_cast<size_t>(t)]);
  for (int64_t c = 0; f.x.S0 && c < f.K(); ++c)
    decode_run(*f.x.S0, f.state_row(s, c) + column, 1, &x.S0[static_cast<size_t>(c)]);
  return x;
}

bool finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double y) { return std::isfinite(y); });
}

bool in_domain(const KeyInputs& x) {
  return finite(x.q) && finite(x.k) && finite(x.g) &&
         std::all_of(x.g.begin(), x.g.end(), [](double g) { return g <= 0; });
}

/// Takes over what is narrower; true where the whole column now is narrow enough.
bool accept(const ForwardProblem& f, const Slice& s, int64_t column, const ColumnOutputs& y, int rung) {
  bool narrow = true;
  const auto take = [&](ReferenceOutput& out, int64_t at, const Ball<double>& ball) {
    const size_t i = static_cast<size_t>(at);
    if (ball.rad < out.rad[i]) out.mid[i] = ball.mid, out.rad[i] = ball.rad;
    narrow = narrow && (!too_wide(out.rad[i], out.bound[i]) || out_of_reach(f, out.mid[i], out.bound[i]));
  };
  for (int64_t t = 0; t < s.tokens; ++t) take(f.o, f.output_row(s, t) + column, y.o[static_cast<size_t>(t)]);
  for (int64_t c = 0; c < f.K(); ++c) take(f.state, f.state_row(s, c) + column, y.S[static_cast<size_t>(c)]);
  const std::lock_guard lock(f.mutex);
  f.o.rung = std::max(f.o.rung, rung), f.state.rung = std::max(f.state.rung, rung);
  return narrow;
}

}  // namespace

void climb_ladder(const ForwardProblem& f, const Slice& s, int64_t v0, const std::vector<int64_t>& wide) {
  if (wide.empty()) return;
  const KeyInputs keys = read_keys(f, s);
  if (!in_domain(keys)) return;  // no precision helps; the radius or the bound is infinite already
  for (size_t from = 0; from < wide.size(); from += kForwardColumns) {
    const size_t count = std::min<size_t>(kForwardColumns, wide.size() - from);
    std::vector<ColumnInputs> columns;
    for (size_t j = 0; j < count; ++j) columns.push_back(read_column(f, s, v0 + wide[from + j]));
    std::vector<ColumnOutputs> precise;
    // Where the kernel claims to be exact the radius must be zero, which only intervals can have.
    if (!f.exact_claimed) precise = precise_columns(keys, columns);
    for (size_t j = 0; j < count; ++j) {
      const int64_t column = v0 + wide[from + j];
      if (!finite(columns[j].v) || !finite(columns[j].S0)) continue;
      if (!precise.empty() && accept(f, s, column, precise[j], 1)) continue;
      ColumnOutputs y;
      for (int level = 0; f.row.literal_column(keys, columns[j], level, y); ++level)
        if (accept(f, s, column, y, 2)) break;
    }
  }
}

}  // namespace assay
