// What the tile-by-tile evaluations of delta rules share (rule_run.h, general_run.h): rows of one sequence
// and head out of tensors, states in doubles, and where rows go in the outputs.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "src/verification/diagnosis/prediction.h"

namespace assay::rule_slices {

/// Doubles' roundings along a slice, of the values' size.
inline constexpr double kOwn = 0x1p-40;

using Rows = std::vector<std::vector<double>>;
inline Rows zeros(int64_t rows, int64_t columns) {
  return Rows(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns), 0));
}

class Reader {
 public:
  Reader(const FailingRun& run, int64_t first, int64_t length, int64_t sequence, int64_t head)
      : run_(run), first_(first), length_(length), sequence_(sequence), head_(head) {}

  Rows tokens(const char* name, double absent = 0) const {
    const auto found = run_.inputs().find(name);
    if (found == run_.inputs().end()) return Rows(static_cast<size_t>(length_), {absent});
    const Tensor& x = found->second;
    const int64_t heads = x.axes[2].size, width = token_width(x) / heads;
    const int64_t h = head_ / (run_.problem.sizes.HV / heads);
    Rows y = zeros(length_, width);
    for (int64_t t = 0; t < length_; ++t)
      for (int64_t c = 0; c < width; ++c)
        y[static_cast<size_t>(t)][static_cast<size_t>(c)] = x.value(((first_ + t) * heads + h) * width + c);
    return y;
  }
  Rows state(const char* name) const {
    const int64_t K = run_.problem.sizes.K, V = run_.problem.sizes.V;
    Rows y = zeros(K, V);
    const auto found = run_.inputs().find(name);
    if (found == run_.inputs().end()) return y;
    const int64_t at = (sequence_ * heads_of_values(found->second) + head_) * K * V;
    for (int64_t i = 0; i < K * V; ++i)
      y[static_cast<size_t>(i / V)][static_cast<size_t>(i % V)] = found->second.value(at + i);
    return y;
  }

 private:
  static int64_t token_width(const Tensor& x) {
    int64_t width = 1;
    for (size_t a = 2; a < x.axes.size(); ++a) width *= x.axes[a].size;
    return width;
  }
  static int64_t heads_of_values(const Tensor& x) { return x.axes[1].size; }

  const FailingRun& run_;
  int64_t first_, length_, sequence_, head_;
};

inline void decay(Rows& S, const std::vector<double>& e) {
  for (size_t c = 0; c < S.size(); ++c)
    for (double& x : S[c]) x *= e[c];
}
inline void add(Rows& S, const std::vector<double>& x, const std::vector<double>& columns, double factor) {
  for (size_t c = 0; c < S.size(); ++c)
    for (size_t j = 0; j < columns.size(); ++j) S[c][j] += factor * x[c] * columns[j];
}
inline std::vector<double> read(const std::vector<double>& x, const Rows& S) {
  std::vector<double> y(S[0].size(), 0);
  for (size_t c = 0; c < S.size(); ++c)
    for (size_t j = 0; j < y.size(); ++j) y[j] += x[c] * S[c][j];
  return y;
}
inline std::vector<double> times(const Rows& S, const std::vector<double>& x) {
  std::vector<double> y(S.size(), 0);
  for (size_t c = 0; c < S.size(); ++c)
    for (size_t j = 0; j < x.size(); ++j) y[c] += S[c][j] * x[j];
  return y;
}
inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// Where rows of a slice lie in an output, added up there.
class Results {
 public:
  explicit Results(const FailingRun& run) : run_(run) {}

  void add_tokens(const std::string& name, const Rows& rows, int64_t first, int64_t head) {
    const ReferenceOutput* right = run_.expected(name);
    if (!right) return;
    const int64_t heads = right->axes[2].size, h = head / (run_.problem.sizes.HV / heads);
    int64_t width = 1;
    for (size_t a = 3; a < right->axes.size(); ++a) width *= right->axes[a].size;
    std::vector<double>& to = start(name, *right);
    for (size_t t = 0; t < rows.size(); ++t)
      for (size_t c = 0; c < rows[t].size(); ++c) {
        const int64_t channel = std::min(static_cast<int64_t>(c), width - 1);  // one gate takes all
        to[static_cast<size_t>(((first + static_cast<int64_t>(t)) * heads + h) * width + channel)] +=
            rows[t][c];
      }
  }
  void add_state(const std::string& name, const Rows& S, int64_t sequence, int64_t head) {
    const ReferenceOutput* right = run_.expected(name);
    if (!right) return;
    std::vector<double>& to = start(name, *right);
    size_t at = static_cast<size_t>(sequence * right->axes[1].size + head) * S.size() * S[0].size();
    for (const auto& row : S)
      for (double x : row) to[at++] += x;
  }
  Prediction prediction() const {
    Prediction p;
    for (const auto& [name, mid] : mids_) {
      const ReferenceOutput& right = *run_.expected(name);
      double largest = 0;
      for (double x : mid) largest = std::fmax(largest, std::fabs(x));
      PredictedOutput& out = p[name];
      out.mid = mid;
      for (size_t i = 0; i < mid.size(); ++i) {
        const double own = kOwn * (largest + right.companion[i]);
        out.bound.push_back(run_.is_on_reals(name) ? own : own + right.bound[i]);
      }
    }
    return p;
  }

 private:
  std::vector<double>& start(const std::string& name, const ReferenceOutput& right) {
    std::vector<double>& to = mids_[name];
    to.resize(right.mid.size(), 0);
    return to;
  }

  const FailingRun& run_;
  std::map<std::string, std::vector<double>> mids_;
};

}  // namespace assay::rule_slices
