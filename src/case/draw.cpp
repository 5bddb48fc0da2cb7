// Inputs drawn from a case. An element depends on the case and on its own place alone (sequence, position in
// it, head, channel), so that it is the same whichever others are drawn.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "reference/domain.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/extremes.h"
#include "src/case/draw_on_demand.h"
#include "src/case/resolved_case.h"
#include "src/case/unit_rows.h"

namespace assay {
namespace {

/// One token's place: its sequence, its position there and the sequence's length.
struct Place {
  int64_t sequence, position, length;
};

std::vector<Place> places(const Case& c) {
  std::vector<Place> all(static_cast<size_t>(c.T));
  for (size_t n = 0; n + 1 < c.cu_seqlens.size(); ++n) {
    for (int64_t t = c.cu_seqlens[n]; t < c.cu_seqlens[n + 1]; ++t) {
      all[t] = {static_cast<int64_t>(n), t - c.cu_seqlens[n], c.cu_seqlens[n + 1] - c.cu_seqlens[n]};
    }
  }
  if (c.cu_seqlens.empty()) {
    for (int64_t t = 0; t < c.T; ++t) all[t] = {0, t, c.T};
  }
  return all;
}

/// Sizes of the tensor seen as [b][t][writes][h][c]: an axis the argument lacks has size 1; those between
/// tokens and heads are writes of a token, every other but B, N, T, H, HV is folded into the channel.
struct Extent {
  int64_t b = 1, t = 1, writes = 1, h = 1, c = 1;
  bool has_time = false;
};

Extent extent_of(const Tensor& tensor) {
  Extent e;
  for (const auto& axis : tensor.axes) {
    if (axis.name == "B" || axis.name == "N")
      e.b *= axis.size;
    else if (axis.name == "T")
      e.t = axis.size, e.has_time = true;
    else if (axis.name == "H" || axis.name == "HV")
      e.h *= axis.size, e.writes *= e.c, e.c = 1;
    else
      e.c *= axis.size;
  }
  return e;
}

/// Of a row of all tokens' writes, which follow each other as the tokens of so much longer a sequence.
Place place_of(int64_t row, const Extent& e, const std::vector<Place>& tokens) {
  if (!e.has_time) return {0, 0, 1};
  const int64_t t = row / e.writes;
  Place place = tokens.empty() ? Place{0, t, e.t} : tokens[static_cast<size_t>(t)];
  place.position = place.position * e.writes + row % e.writes, place.length *= e.writes;
  return place;
}

/// Elements that are drawn together, so that threads are worth their while.
constexpr int64_t kDrawnTogether = 1 << 14;

/// Channels that are drawn at once.
constexpr int64_t kRowPart = 256;

/// Rows of all heads and channels of a token or write, each once, on at most `threads` threads. `draw_row`
/// draws some channels of one head from a place on.
template <typename DrawRow>
void fill(Tensor& tensor, const std::vector<Place>& tokens, int threads, DrawRow draw_row) {
  const Extent e = extent_of(tensor);
  const int64_t width = e.h * e.c, writes = e.t * e.writes, rows = e.b * writes,
                of_task = std::max<int64_t>(1, kDrawnTogether / std::max<int64_t>(width, 1));
  parallel_for((rows + of_task - 1) / of_task, threads, [&](int64_t task) {
    std::array<double, kRowPart> drawn;
    for (int64_t row = task * of_task, end = std::min(row + of_task, rows); row < end; ++row) {
      const int64_t b = row / writes;
      const Place place = place_of(row % writes, e, tokens);
      for (int64_t h = 0; h < e.h; ++h)
        for (int64_t c = 0; c < e.c; c += kRowPart) {
          const std::span<double> part(drawn.data(), static_cast<size_t>(std::min(kRowPart, e.c - c)));
          draw_row(Coordinates{b + place.sequence, place.position, h, c}, place.length, e.c, part);
          tensor.set_run(row * width + h * e.c + c, part);
        }
    }
  });
}

/// The case with the argument's writes as its tokens.
Case of_writes(Case c, const ArgumentSpec& spec) {
  c.T *= extent_of(sized(spec, c).shape).writes;
  return c;
}

/// The elements of one argument, each from its place alone.
class Elements {
 public:
  Elements(const ArgumentSpec& spec, const ResolvedCase& r)
      : case_(of_writes(r.case_, spec)),
        name_(spec.name),
        random_(r.case_.seed, spec.name),
        kind_(*r.values),
        positive_(spec.role == Role::positive || spec.not_negative) {
    if (spec.role == Role::log_decay) decay_ = r.decay;
    sharing_ = std::max<int64_t>(1, r.sizes.HV / std::max<int64_t>(1, r.sizes.H));
    role_ = spec.role, removes_ = removes_from_state(*r.op);
    const bool rates = std::any_of(r.op->inputs.begin(), r.op->inputs.end(), [&](const ArgumentSpec& x) {
      return x.role == Role::rate && !r.case_.without.contains(std::string(x.name));
    });
    for (const ArgumentSpec& other : r.op->inputs) {
      const bool told =
          role_ == Role::opposed || role_ == Role::along || role_ == Role::rate || other.name == spec.name;
      replaces_ |= other.role == Role::rate;
      if (other.role == Role::unit && told)
        rows_.emplace(case_, RandomStream(r.case_.seed, other.name), r.sizes.of(other.axes.back()), rates);
    }
  }
  double at(const Coordinates& at, int64_t length, int64_t channels) const {
    if (decay_) return decay_->profile->draw({random_, decay_->arguments, at, length});
    if (rows_ && role_ == Role::opposed) return rows_->opposed(at, length);
    if (rows_ && role_ == Role::along) return rows_->along(at, length);
    if (rows_ && role_ == Role::rate) return rows_->replaced(at, at.h / sharing_);
    if (rows_) return replaces_ ? rows_->key(at, length) : rows_->unit(at);
    const double value = kind_.draw({random_, case_, name_, at, channels, removes_});
    return positive_ ? std::fabs(value) : value;
  }
  /// Between what they lie in a format. Of values other than decays and rates: they are finite.
  std::optional<Extremes> extremes(Dtype dtype) const {
    if (decay_) return decay_->extremes(dtype);
    if (role_ == Role::log_decay || (role_ == Role::rate && !rows_)) return std::nullopt;
    constexpr double kMost = std::numeric_limits<double>::max();
    if (role_ != Role::rate) return Extremes{positive_ ? 0 : -kMost, kMost};
    return Extremes{0, decode(dtype, encode(dtype, std::min(case_.rates, kLargestRate)))};
  }
  /// As `at`, of the channels from `first` on.
  void row(const Coordinates& first, int64_t length, int64_t channels, std::span<double> out) const {
    const auto count = static_cast<int64_t>(out.size());
    if (decay_ && decay_->profile->draw_row)
      return decay_->profile->draw_row({random_, decay_->arguments, first, length}, count, out.data());
    if (!decay_ && !rows_ && kind_.draw_row) {
      kind_.draw_row({random_, case_, name_, first, channels, removes_}, count, out.data());
      if (positive_)
        for (double& x : out) x = std::fabs(x);
      return;
    }
    if (rows_ && role_ != Role::opposed && role_ != Role::along && role_ != Role::rate) {
      if (replaces_) return rows_->keys(first, length, count, out.data());
      return rows_->units(first, count, out.data());
    }
    Coordinates place = first;
    for (double& x : out) x = at(place, length, channels), ++place.c;
  }

 private:
  const Case case_;
  const std::string name_;
  const RandomStream random_;
  const ValueKind& kind_;
  const bool positive_;
  std::optional<ParsedDecay> decay_;
  std::optional<UnitRows> rows_;
  Role role_ = Role::value;
  int64_t sharing_ = 1;  ///< value heads to one key head
  bool removes_ = false, replaces_ = false;
};

/// The same elements on demand.
class DrawnSource : public TensorSource, public KnownExtremes {
 public:
  DrawnSource(const SizedArgument& argument, const ResolvedCase& r)
      : elements_(argument.spec, r),
        extremes_(elements_.extremes(argument.shape.dtype)),
        extent_(extent_of(argument.shape)),
        dtype_(argument.shape.dtype) {
    if (!r.case_.cu_seqlens.empty()) tokens_ = places(r.case_);
  }
  uint64_t bits(int64_t flat) const override {
    const int64_t c = flat % extent_.c, h = flat / extent_.c % extent_.h;
    const int64_t row = flat / extent_.c / extent_.h, writes = extent_.t * extent_.writes, b = row / writes;
    const Place place = place_of(row % writes, extent_, tokens_);
    return encode(dtype_, elements_.at({b + place.sequence, place.position, h, c}, place.length, extent_.c));
  }
  std::optional<Extremes> extremes() const override { return extremes_; }

 private:
  const Elements elements_;
  const std::optional<Extremes> extremes_;
  const Extent extent_;
  const Dtype dtype_;
  std::vector<Place> tokens_;
};

/// Where one input is made on demand no value is judged, and of the others too some blocks read little: only
/// small ones are drawn whole, and what a case says of elements.
int64_t largest_held(const ResolvedCase& r) {
  constexpr int64_t kSmall = int64_t{1} << 20;
  const bool judged = std::all_of(r.inputs.begin(), r.inputs.end(), [](const SizedArgument& input) {
    return input.shape.bytes() <= kLargestHeld;
  });
  return judged || !r.overrides.empty() ? kLargestHeld : kSmall;
}

Tensor draw_argument(const SizedArgument& argument, const ResolvedCase& r, const std::vector<Place>& tokens,
                     int64_t largest_held, int threads) {
  Tensor tensor = argument.shape;
  if (!r.case_.blocks.empty() && tensor.bytes() > largest_held) return draw_on_demand(argument, r);
  tensor.data.resize(static_cast<size_t>(tensor.bytes()));
  const Elements elements(argument.spec, r);
  fill(tensor, tokens, threads,
       [&](const Coordinates& first, int64_t length, int64_t channels, std::span<double> part) {
         elements.row(first, length, channels, part);
       });
  return tensor;
}

}  // namespace

Tensor draw_on_demand(const SizedArgument& argument, const ResolvedCase& r) {
  Tensor tensor = argument.shape;
  tensor.source = std::make_shared<DrawnSource>(argument, r);
  return tensor;
}

namespace {

/// Those of the inputs that are wanted.
template <typename Wanted>
TensorMap drawn(const ResolvedCase& r, int threads, Wanted wanted) {
  const Case& c = r.case_;
  // A run of some blocks may have more tokens than there is memory for.
  const bool listed = c.blocks.empty() || !c.cu_seqlens.empty() || c.T <= kLargestHeld / 64;
  const std::vector<Place> tokens = listed ? places(c) : std::vector<Place>{};
  const int64_t held = largest_held(r);
  TensorMap inputs;
  for (const SizedArgument& input : r.inputs)
    if (wanted(input.spec)) inputs.emplace(input.spec.name, draw_argument(input, r, tokens, held, threads));
  for (const Override& override : r.overrides) apply_override(override, inputs);
  return inputs;
}

}  // namespace

TensorMap draw_inputs(const ResolvedCase& r, int threads) {
  return drawn(r, threads, [](const ArgumentSpec&) { return true; });
}

TensorMap draw_limited_inputs(const ResolvedCase& r) {
  return drawn(r, 1, [&](const ArgumentSpec& spec) {
    return !r.overrides.empty() || spec.role == Role::log_decay || spec.role == Role::rate;
  });
}

TensorMap inputs_without_values(const ResolvedCase& r) {
  TensorMap inputs;
  for (const SizedArgument& input : r.inputs) inputs.emplace(input.spec.name, input.shape);
  return inputs;
}

TensorMap draw_inputs(const Case& c, const Operator& op) {
  return draw_inputs(resolve_unchecked(c, op));
}

}  // namespace assay
