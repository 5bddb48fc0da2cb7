#include "src/verification/diagnosis/fingerprint.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "src/base/numerics/counted_work.h"

namespace assay {
namespace {

/// Of the input's root mean square, at most of 1: so small that a decay stays a decay, so large that the
/// doubles of both sides (2^-52 of the output) leave some 40 bits of the difference.
constexpr double kMove = 0x1p-8;

/// Of many elements moved together the outputs move alike within this share of the larger move, or of a share
/// of the largest. A rounded constant that is taken for a difference costs time, no more.
constexpr double kSameMove = 0x1p-18, kOfTheLargestMove = 0x1p-4;

double size_of_move(const Tensor& input) {
  double squares = 0;
  for (int64_t i = 0; i < input.size(); ++i) squares += input.value(i) * input.value(i);
  const double rms = std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, input.size())));
  return std::isfinite(rms) && rms > 0 ? kMove * std::min(1.0, rms) : kMove;
}

/// Away from 0, so that decays and positive numbers stay what they are.
double move_of(const Tensor& input, int64_t flat, double size, bool negative) {
  const double value = input.value(flat);
  return value < 0 || (value == 0 && negative) ? -size : size;
}

Tensor shape_of(const Tensor& t) {
  Tensor shape;
  shape.name = t.name, shape.dtype = t.dtype, shape.axes = t.axes;
  return shape;
}

/// Elements [first, last) of an input, by flat number.
struct Range {
  int64_t first = 0, last = 0;
  int64_t size() const { return last - first; }
};

struct MovedInput {
  std::string name;
  const Tensor* tensor = nullptr;
  double size = 0;
  bool negative = true;  ///< no element is above 0
  std::deque<Range> open{};
};

std::vector<MovedInput> moved_inputs(const TensorMap& inputs) {
  std::vector<MovedInput> all;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.is_held() || tensor.size() == 0 || format(tensor.dtype).bytes < 2 ||
        tensor.dtype == Dtype::i32 || tensor.dtype == Dtype::i64)
      continue;
    MovedInput input{name, &tensor, size_of_move(tensor)};
    for (int64_t i = 0; i < tensor.size(); ++i) input.negative &= !(tensor.value(i) > 0);
    input.open.push_back({0, tensor.size()});
    all.push_back(std::move(input));
  }
  return all;
}

/// Of a range that is moved, beside what the functions take, in nanoseconds (counted_work.h).
constexpr double kOfMove = 2'000;

/// Moves ranges of elements of the inputs and halves those that show a difference, until single elements are
/// left or the time is over.
class Search {
 public:
  Search(const TensorMap& inputs, const std::vector<Tensor>& outputs, const MovableFunction& program,
         const MovableFunction& reference)
      : outputs_(outputs), program_(program), reference_(reference), moved_(moved_inputs(inputs)) {
    for (const MovedInput& input : moved_)
      for (const Tensor& output : outputs) {
        dependences.push_back({shape_of(output), shape_of(*input.tensor), {}});
        dependences.back().input.name = input.name;
      }
  }

  bool begin() {
    at_ = program_({}), should_ = reference_({});
    return at_ && should_;
  }
  /// One range of each input that has some left; false: none has.
  template <class Late>
  bool step(const Late& late) {
    bool any = false;
    for (size_t i = 0; i < moved_.size() && !late(); ++i) {
      if (moved_[i].open.empty()) continue;
      const Range range = moved_[i].open.front();
      moved_[i].open.pop_front();
      any = look_at(i, range);
      if (!any) return false;
    }
    return any;
  }
  int64_t elements() const {
    int64_t n = 0;
    for (const MovedInput& input : moved_) n += input.tensor->size();
    return n;
  }
  /// That lie in ranges not looked at.
  int64_t left() const {
    int64_t n = 0;
    for (const MovedInput& input : moved_)
      for (const Range& range : input.open) n += range.size();
    return n;
  }

  std::vector<Dependence> dependences;  ///< by input, then output

 private:
  static constexpr int64_t kSingly = 4, kOfARightRange = 3;

  vm::InputMoves move(const MovedInput& input, Range range) const {
    std::vector<vm::ElementMove> moves;
    for (int64_t i = range.first; i < range.last; ++i) {
      // unlike weights, so that no two elements' differences cancel
      const double weight = range.size() == 1 ? 1 : 0.5 + std::fmod(0.618 * static_cast<double>(i), 0.5);
      moves.push_back({i, weight * move_of(*input.tensor, i, input.size, input.negative)});
    }
    return {{input.name, std::move(moves)}};
  }
  bool differs(const vm::RealOutputs& is, const vm::RealOutputs& should) const;
  void add_columns(size_t input, int64_t flat, const vm::RealOutputs* is, const vm::RealOutputs& should);
  bool look_at(size_t i, Range range);

  const std::vector<Tensor>& outputs_;
  const MovableFunction &program_, &reference_;
  std::vector<MovedInput> moved_;
  std::optional<vm::RealOutputs> at_, should_;
};

/// Is some output moved by another distance than it should?
bool Search::differs(const vm::RealOutputs& is, const vm::RealOutputs& should) const {
  for (const Tensor& output : outputs_) {
    const std::string& name = output.name;
    if (!is.contains(name) || !should.contains(name)) continue;
    const std::vector<double>&x = is.at(name), &y = should.at(name), &x0 = at_->at(name),
          &y0 = should_->at(name);
    double largest = 0;
    for (size_t i = 0; i < y.size(); ++i) largest = std::max(largest, std::fabs(y[i] - y0[i]));
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      const double a = x[i] - x0[i], b = y[i] - y0[i];
      if (std::isfinite(a) && std::isfinite(b) &&
          std::fabs(a - b) > kSameMove * std::max({std::fabs(a), std::fabs(b), kOfTheLargestMove * largest}))
        return true;
    }
  }
  return false;
}

/// `is` null: the program's derivatives are the reference's.
void Search::add_columns(size_t input, int64_t flat, const vm::RealOutputs* is,
                         const vm::RealOutputs& should) {
  const double by = move_of(*moved_[input].tensor, flat, moved_[input].size, moved_[input].negative);
  const auto slopes = [&](const std::vector<double>& moved, const std::vector<double>& at) {
    std::vector<double> slope(at.size());
    for (size_t i = 0; i < at.size() && i < moved.size(); ++i) slope[i] = (moved[i] - at[i]) / by;
    return slope;
  };
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const std::string& name = outputs_[o].name;
    if (!should.contains(name) || (is && !is->contains(name))) continue;
    std::vector<double> right = slopes(should.at(name), should_->at(name));
    dependences[input * outputs_.size() + o].columns.push_back(
        {flat, is ? slopes(is->at(name), at_->at(name)) : right, right});
  }
}

bool Search::look_at(size_t i, Range range) {
  MovedInput& input = moved_[i];
  if (range.size() > 1 && range.size() <= kSingly) {
    for (int64_t flat = range.first; flat < range.last; ++flat) input.open.push_back({flat, flat + 1});
    return true;
  }
  count_work(1, kOfMove);
  const vm::InputMoves moves = move(input, range);
  const auto is = program_(moves), should = reference_(moves);
  if (!is || !should) return false;
  if (range.size() == 1) {
    add_columns(i, range.first, &*is, *should);
  } else if (differs(*is, *should)) {
    const int64_t middle = range.first + range.size() / 2;
    input.open.push_back({range.first, middle});
    input.open.push_back({middle, range.last});
  } else {
    for (int64_t n = 0; n < kOfARightRange; ++n) {
      const int64_t flat = range.first + n * (range.size() - 1) / (kOfARightRange - 1);
      if (const auto column = reference_(move(input, {flat, flat + 1})))
        add_columns(i, flat, nullptr, *column);
    }
  }
  return true;
}

}  // namespace

Fingerprint fingerprint(const TensorMap& inputs, const std::vector<Tensor>& outputs,
                        const MovableFunction& program, const MovableFunction& reference, double seconds) {
  const double start = counted_seconds();
  const auto late = [&] { return counted_seconds() - start >= seconds; };
  Search search(inputs, outputs, program, reference);
  Fingerprint result;
  if (!search.begin()) return result;
  while (!late() && search.step(late)) {
  }
  result.elements = search.elements(), result.moved = result.elements - search.left();
  static_cast<FingerprintText&>(result) = sentences_of(search.dependences, inputs);
  return result;
}

}  // namespace assay
