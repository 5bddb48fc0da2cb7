#include "src/verification/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/parallel.h"
#include "reference/slices.h"
#include "src/base/numerics/format_runs.h"
#include "src/base/tensor/index_letter.h"
#include "src/verification/compare/judge.h"

namespace assay {
namespace {

/// Longest list of a folded field; a longer axis is folded into equal blocks.
constexpr int64_t kMaxFieldLength = 1024;
/// One folding: element index along `axis`, taken through `/ divide % modulo`.
struct Fold {
  int64_t stride, size, divide, modulo;
  FoldedField field;
  bool of_last = false;  ///< axis

  void add(int64_t flat, double ratio) {
    double& most = field.max_ratio[static_cast<size_t>(flat / stride % size / divide % modulo)];
    most = std::max(most, ratio);
  }
};

/// All foldings of a tensor's ratios, which come in the order of its elements, from the start of a row on.
class Folds {
 public:
  Folds(std::vector<Fold> folds, int64_t width, int64_t first)
      : folds_(std::move(folds)), width_(width), row_(first), columns_(static_cast<size_t>(width)) {}

  /// Of elements that follow each other.
  void add(int64_t flat, const double* ratios, int64_t count) {
    while (count > 0) {
      if (flat >= row_ + width_) end_row(), row_ = flat - flat % width_;
      const int64_t column = flat - row_, some = std::min(count, width_ - column);
      double* const columns = columns_.data() + column;
      for (int64_t i = 0; i < some; ++i) {
        columns[i] = std::max(columns[i], ratios[i]);
        largest_ = std::max(largest_, ratios[i]);
      }
      flat += some, ratios += some, count -= some;
    }
  }
  void add(const Folds& o) {
    for (size_t f = 0; f < folds_.size(); ++f) {
      std::vector<double>& most = folds_[f].field.max_ratio;
      const std::vector<double>& others = o.folds_[f].field.max_ratio;
      for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], others[i]);
    }
  }
  std::vector<FoldedField> fields() && {
    std::vector<FoldedField> y;
    for (Fold& fold : folds_) y.push_back(std::move(fold.field));
    return y;
  }
  /// A row of the last axis is at one place of all others.
  void end_row() {
    for (Fold& fold : folds_)
      if (!fold.of_last && largest_ > 0) fold.add(row_, largest_);
    largest_ = 0;
  }
  /// Behind the last row.
  void end() {
    end_row();
    for (Fold& fold : folds_)
      for (int64_t column = 0; fold.of_last && column < width_; ++column)
        fold.add(column, columns_[static_cast<size_t>(column)]);
  }

 private:
  std::vector<Fold> folds_;
  const int64_t width_;
  int64_t row_;  ///< its first element
  double largest_ = 0;
  std::vector<double> columns_;  ///< of all rows the largest
};

std::vector<Fold> folds_of(const Tensor& tensor) {
  std::vector<Fold> folds;
  const std::vector<int64_t> strides = tensor.strides();
  for (size_t i = 0; i < tensor.axes.size() && tensor.size() > 0; ++i) {
    const int64_t size = tensor.axes[i].size;
    const std::string letter = index_letter(tensor.axes[i].name);
    const int64_t divide = (size + kMaxFieldLength - 1) / kMaxFieldLength,
                  count = (size + divide - 1) / divide;
    const bool last = i + 1 == tensor.axes.size();
    const std::string name = divide == 1 ? letter : fmt::format("{} / {}", letter, divide);
    folds.push_back({strides[i], size, divide, count, {name, std::vector<double>(count)}, last});
    for (const int64_t modulo : {64, 16}) {
      if (tensor.axes[i].name != "T" || size <= modulo) continue;
      folds.push_back({strides[i],
                       size,
                       1,
                       modulo,
                       {fmt::format("{} mod {}", letter, modulo), std::vector<double>(modulo)},
                       last});
    }
  }
  return folds;
}

/// Error and bound before the output was rounded to its format: the bound is b + u (|o| + b) + h with u the
/// unit roundoff of the output and h half its smallest subnormal; the value before rounding lies within half
/// a unit of the stored one. fp32 outputs are the accumulators themselves: nothing is removed.
struct Unrounded {
  double error, bound;
};

/// Of an output: its format's smallest subnormal, and what it was declared to be rounded with; 0 where
/// nothing is removed.
struct Storing {
  double subnormal = 0, roundoff = 0;

  Storing(Dtype dtype, double declared)
      : subnormal(min_subnormal(dtype)), roundoff(dtype == Dtype::fp32 ? 0 : declared) {}
};

/// `spacing`: of the format at the stored value.
Unrounded before_rounding(const Storing& storing, double spacing, double mid, double error, double bound) {
  const double roundoff = storing.roundoff;
  if (roundoff == 0) return {error, bound};
  const double without = (bound - roundoff * std::fabs(mid) - storing.subnormal / 2) / (1 + roundoff);
  return {std::max(0.0, error - spacing / 2), std::max(0.0, without)};
}

/// By binades from 2^-59 on; the first but one has what is smaller and not 0.
size_t histogram_bin(double ratio) {
  if (ratio == 0) return 0;
  if (std::isinf(ratio)) return 63;
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(ratio) >> 52) - 1023;
  return static_cast<size_t>(std::clamp(exponent + 60, 1, 63));
}

/// Larger is worse: a wrong class before any ratio.
double badness(const ElementJudgement& j) {
  const bool wrong = j.verdict == ElementVerdict::nonfinite || j.verdict == ElementVerdict::wrong_class;
  return wrong ? std::numeric_limits<double>::infinity()
               : std::min(j.ratio, std::numeric_limits<double>::max());
}

WorstElement describe(const Tensor& got, const ReferenceOutput& reference, int64_t flat,
                      const ElementJudgement& j) {
  const double mid = reference.mid[flat];
  WorstElement worst;
  worst.element = got.element_name(flat);
  worst.flat = flat;
  worst.got = got.value(flat);
  worst.got_bits = got.bits(flat);
  worst.expected = mid;
  worst.expected_bits = encode(got.dtype, mid);
  worst.expected_rounded = decode(got.dtype, worst.expected_bits);
  worst.absolute = j.error;
  worst.relative = j.error == 0 ? 0 : j.error / std::fabs(mid);
  worst.ulp = j.error == 0 ? 0 : j.error / ulp(got.dtype, worst.expected_rounded);
  worst.bound = reference.bound[flat];
  worst.ratio = j.ratio;
  return worst;
}

void count_verdict(OutputComparison& c, ElementVerdict verdict) {
  int64_t* const counters[] = {&c.ok, &c.violation, &c.nonfinite, &c.wrong_class, &c.undecided};
  ++*counters[static_cast<size_t>(verdict)];
}

/// Everything that is a maximum over the elements.
void accumulate(OutputComparison& c, const ReferenceOutput& reference, int64_t flat, double got,
                double spacing, const ElementJudgement& j, const Storing& storing) {
  c.max_ratio = std::max(c.max_ratio, j.ratio);
  ++c.histogram[histogram_bin(j.ratio)];
  const double bound = reference.bound[flat];
  if (!std::isfinite(j.error) || !std::isfinite(got) || !(bound > 0) || std::isinf(bound)) return;
  c.max_enclosure = std::max(c.max_enclosure, reference.rad[flat] / bound);
  const Unrounded u = before_rounding(storing, spacing, reference.mid[flat], j.error, bound);
  if (u.bound > 0) c.max_tightness = std::max(c.max_tightness, u.error / u.bound);
  // The absolute part of the bound is left out; where it exceeds the companion the difference says nothing.
  const double companion = reference.companion[flat];
  const double absolute = reference.underflow.empty() ? 0 : reference.underflow[flat];
  if (companion > absolute) {
    c.max_relative_bound =
        std::max(c.max_relative_bound, (u.bound - std::min(absolute, u.bound)) / companion);
  }
}

/// Nothing but the bound is infinite: the exact value is known, and `within` the kernel's.
bool lacks_only_a_bound(double got, double within, const ReferenceOutput& reference, int64_t flat) {
  const auto i = static_cast<size_t>(flat);
  return std::isinf(reference.bound[i]) && std::fabs(got - reference.mid[i]) + reference.rad[i] <= within;
}

/// Elements whose values are decoded together.
constexpr int64_t kJudgedAtOnce = 256;

void read(const Tensor& tensor, int64_t first, int64_t count, double* values) {
  if (tensor.is_held()) return decode_run(tensor, first, count, values);
  for (int64_t i = 0; i < count; ++i) values[i] = tensor.value(first + i);
}

/// Elements that follow each other, from the start of a row on: what is counted of them, and the worst.
struct Piece {
  OutputComparison c;
  Folds folds;
  double worst = -1;
  int64_t worst_flat = -1;

  /// Of the elements first .. end - 1.
  void judge_all(const Tensor& got, const ReferenceOutput& reference, const std::vector<uint8_t>* judged,
                 double within, int64_t first, int64_t end, ElementVerdict* verdicts);
  /// Of `count` elements, whose verdicts are `ok` where it says so; false, and nothing is counted, where one
  /// is not finite or not plainly within its bound.
  bool take_plain(const ReferenceOutput& reference, int64_t first, int64_t count, const double* values,
                  const double* spacings, const Storing& storing, double threshold);
  /// Those of a later piece.
  void add(const Piece&);
};

void Piece::judge_all(const Tensor& got, const ReferenceOutput& reference, const std::vector<uint8_t>* judged,
                      double within, int64_t first, int64_t end, ElementVerdict* verdicts) {
  const Storing storing(got.dtype, reference.roundoff);
  const double threshold = overflow_threshold(got.dtype);
  alignas(16) double values[kJudgedAtOnce], spacings[kJudgedAtOnce];
  for (int64_t run = first; run < end; run += kJudgedAtOnce) {
    const int64_t count = std::min(kJudgedAtOnce, end - run);
    read(got, run, count, values);
    ulp_run(got.dtype, values, count, spacings);
    if (!judged && take_plain(reference, run, count, values, spacings, storing, threshold)) {
      std::fill_n(verdicts + run, count, ElementVerdict::ok);
      continue;
    }
    for (int64_t flat = run; flat < run + count; ++flat) {
      if (judged && !(*judged)[static_cast<size_t>(flat)]) continue;
      ++c.elements;
      const double value = values[flat - run];
      if (lacks_only_a_bound(value, within, reference, flat)) {
        verdicts[flat] = ElementVerdict::ok;
        ++c.ok, ++c.by_formula;
        continue;
      }
      const ElementJudgement j =
          judge_beside(threshold, value, reference.mid[flat], reference.rad[flat], reference.bound[flat]);
      verdicts[flat] = j.verdict;
      count_verdict(c, j.verdict);
      accumulate(c, reference, flat, value, spacings[flat - run], j, storing);
      folds.add(flat, &j.ratio, 1);
      if (badness(j) > worst) worst = badness(j), worst_flat = flat;
    }
  }
  folds.end();
}

namespace {

// Two at once: vectors of the language, since comparisons of doubles keep compilers from making them.
typedef double Two __attribute__((vector_size(16)));
typedef int64_t TwoBits __attribute__((vector_size(16)));

[[gnu::always_inline]] inline void take(Two& to, const double* from) {
  std::memcpy(&to, from, sizeof to);
}
[[gnu::always_inline]] inline void raise(Two& most, const Two& x) {
  most = most < x ? x : most;
}
double largest_of(const Two& x) {
  return std::max(x[0], x[1]);
}

}  // namespace

bool Piece::take_plain(const ReferenceOutput& reference, int64_t first, int64_t count, const double* values,
                       const double* spacings, const Storing& storing, double threshold) {
  if (count % 2 != 0) return false;
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto size_of = [](const Two& x) { return (Two)((TwoBits)x & INT64_MAX); };
  const auto where = [](const TwoBits& lanes, const Two& x) { return (Two)((TwoBits)x & lanes); };
  alignas(16) double ratios[kJudgedAtOnce];
  Two most{}, enclosure{}, tightness{}, relative{};
  TwoBits plain = ~TwoBits{};
  for (int64_t i = 0; i < count; i += 2) {
    const size_t at = static_cast<size_t>(first + i);
    Two got, spacing, mid, rad, bound, companion, absolute{};
    take(got, values + i), take(spacing, spacings + i), take(mid, &reference.mid[at]);
    take(rad, &reference.rad[at]), take(bound, &reference.bound[at]);
    take(companion, &reference.companion[at]);
    if (!reference.underflow.empty()) take(absolute, &reference.underflow[at]);
    const Two error = size_of(got - mid), slack = error * 0x1p-52;
    plain &= (size_of(got) <= kMost) & (size_of(mid) <= kMost) & (rad >= 0) & (bound >= 0) &
             (bound <= kMost) & (rad <= kNarrowEnclosure * bound) & (error + slack + rad <= bound) &
             ~(size_of(mid) - rad - bound >= threshold);
    const Two ratio = where(error != 0, error / bound);
    std::memcpy(ratios + i, &ratio, sizeof ratio);
    raise(most, ratio);
    raise(enclosure, where(bound > 0, rad / bound));
    Two left = error, allowed = bound;
    if (storing.roundoff != 0) {
      left = error - spacing / 2;
      allowed = (bound - storing.roundoff * size_of(mid) - storing.subnormal / 2) / (1 + storing.roundoff);
      left = where(0 < left, left), allowed = where(0 < allowed, allowed);
    }
    raise(tightness, where((bound > 0) & (allowed > 0), left / allowed));
    const Two beyond = allowed - (allowed < absolute ? allowed : absolute);
    raise(relative, where((bound > 0) & (companion > absolute), beyond / companion));
  }
  if (!(plain[0] & plain[1])) return false;
  c.elements += count, c.ok += count;
  c.max_ratio = std::max(c.max_ratio, largest_of(most)),
  c.max_enclosure = std::max(c.max_enclosure, largest_of(enclosure));
  c.max_tightness = std::max(c.max_tightness, largest_of(tightness));
  c.max_relative_bound = std::max(c.max_relative_bound, largest_of(relative));
  for (int64_t i = 0; i < count; ++i) ++c.histogram[histogram_bin(ratios[i])];
  folds.add(first, ratios, count);
  if (largest_of(most) > worst) {
    worst = largest_of(most);
    worst_flat = first + (std::find(ratios, ratios + count, worst) - ratios);
  }
  return true;
}

void Piece::add(const Piece& o) {
  c.elements += o.c.elements, c.by_formula += o.c.by_formula;
  c.ok += o.c.ok, c.violation += o.c.violation, c.nonfinite += o.c.nonfinite;
  c.wrong_class += o.c.wrong_class, c.undecided += o.c.undecided;
  for (double OutputComparison::*most :
       {&OutputComparison::max_ratio, &OutputComparison::max_tightness, &OutputComparison::max_relative_bound,
        &OutputComparison::max_enclosure})
    c.*most = std::max(c.*most, o.c.*most);
  for (size_t i = 0; i < c.histogram.size(); ++i) c.histogram[i] += o.c.histogram[i];
  folds.add(o.folds);
  if (o.worst > worst) worst = o.worst, worst_flat = o.worst_flat;
}

/// Elements of a piece, about.
constexpr int64_t kOfPiece = int64_t{1} << 16;

}  // namespace

OutputComparison compare_output(const Tensor& got, const ReferenceOutput& reference,
                                const std::vector<uint8_t>* judged, double within, int threads) {
  assert(got.axes == reference.axes && static_cast<int64_t>(reference.mid.size()) == got.size());
  const int64_t width = got.axes.empty() ? 1 : std::max<int64_t>(1, got.axes.back().size),
                each = std::max<int64_t>(1, kOfPiece / width) * width;
  std::vector<ElementVerdict> verdicts(static_cast<size_t>(got.size()));
  const std::vector<Fold> folds = folds_of(got);
  std::vector<Piece> pieces;
  for (int64_t first = 0; first == 0 || first < got.size(); first += each) {
    pieces.push_back({{}, Folds(folds, width, first)});
    pieces.back().c.dtype = got.dtype;
  }
  parallel_for(std::ssize(pieces), threads, [&](int64_t i) {
    pieces[static_cast<size_t>(i)].judge_all(got, reference, judged, within, i * each,
                                             std::min((i + 1) * each, got.size()), verdicts.data());
  });
  Piece& all = pieces.front();
  for (size_t i = 1; i < pieces.size(); ++i) all.add(pieces[i]);
  OutputComparison c = std::move(all.c);
  c.name = reference.name;
  c.axes = got.axes;
  c.verdicts = std::move(verdicts);
  if (all.worst_flat >= 0) {
    const int64_t at = all.worst_flat;
    c.worst =
        describe(got, reference, at,
                 judge(got.dtype, got.value(at), reference.mid[at], reference.rad[at], reference.bound[at]));
  }
  if (c.undecided > 0 || c.by_formula == 0) c.undecided_reason = reference.undecided;
  c.fields = std::move(all.folds).fields();
  return c;
}

int64_t differing_elements(const Tensor& a, const Tensor& b, int64_t* first) {
  assert(a.axes == b.axes && a.dtype == b.dtype);
  if (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0) return 0;
  int64_t differing = 0;
  for (int64_t flat = 0; flat < a.size(); ++flat) {
    if (a.bits(flat) == b.bits(flat) || (std::isnan(a.value(flat)) && std::isnan(b.value(flat)))) continue;
    if (differing++ == 0 && first) *first = flat;
  }
  return differing;
}

}  // namespace assay
