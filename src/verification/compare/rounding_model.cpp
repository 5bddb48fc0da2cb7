#include "src/verification/compare/rounding_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "reference/parallel.h"
#include "reference/sampled_chunk.h"
#include "src/verification/compare/carried_samples.h"

namespace assay {
namespace {

/// The squares of terms that make an element smaller than this are no floats; where its exact value is so
/// small, though not 0, it is not judged.
constexpr double kLeastValue = 0x1p-60;

/// A power of two that brings the block's largest exact value near 1: products of samples are sums of floats,
/// and would underflow where decays leave little.
float scale_of(const OutputBlock& block, const ReferenceOutput& reference, const OutputModel& model) {
  double largest = 0;
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t flat = model.blocks.row(block, r), end = flat + model.blocks.columns(); flat < end; ++flat)
      if (const auto i = static_cast<size_t>(flat); model.rest[i] >= 0)
        largest = std::fmax(largest, std::fabs(reference.mid[i]));
  return largest > 0 ? static_cast<float>(std::ldexp(1, std::clamp(-std::ilogb(largest), -120, 120))) : 1;
}

/// The bound of an element without what storing the output may add to it.
double without_storing(const ReferenceOutput& reference, size_t i, double half_subnormal) {
  const double u = reference.roundoff, bound = reference.bound[i];
  if (u == 0) return bound;
  return std::fmax(0, (bound - u * std::fabs(reference.mid[i]) - half_subnormal) / (1 + u));
}

/// An element whose bound is left at that; what is not finite is not judged.
void take_rest(const ReferenceOutput& reference, size_t i, double rest, OutputModel& model,
               ExpectedErrors& to) {
  const double x = std::fabs(reference.mid[i]), left = rest + reference.rad[i];
  if (!std::isfinite(x) || !std::isfinite(left) || !std::isfinite(reference.bound[i])) return;
  if (x > 0 && x < kLeastValue) return;
  model.rest[i] = left;
  ++to.elements;
  to.exact_squares += x * x;
  to.rest_squares += left * left, to.rest_along += x * left, to.rest += left;
}

/// r (|x| + |terms|) and what underflows; of split operands never more than the bound.
void add_rest(const NoiseBlock& noise, const OutputBlock& block, const ReferenceOutput& reference,
              OutputModel& model) {
  ExpectedErrors& to = model.expected[static_cast<size_t>(&block - model.blocks.blocks().data())];
  for (int64_t r = 0; r < noise.rows; ++r)
    for (int64_t c = 0; c < noise.columns; ++c) {
      const auto i = static_cast<size_t>(model.blocks.row(block, r) + c);
      const double terms = std::sqrt(static_cast<double>(noise.squares[r * noise.columns + c]));
      const double moved =
          noise.moved ? std::sqrt(static_cast<double>(noise.moved[r * noise.columns + c])) : 0;
      double rest = noise.rest * (std::fabs(reference.mid[i]) + terms) + moved + reference.underflow[i];
      if (model.operands == Dtype::fp32) rest = std::fmin(rest, without_storing(reference, i, 0));
      take_rest(reference, i, std::isnan(rest) ? HUGE_VAL : rest, model, to);
    }
}

void add_common(const NoiseBlock& noise, const OutputBlock& block, const ReferenceOutput& reference,
                const OutputModel& model, ExpectedErrors& to) {
  double along = 0, sum = 0;
  for (int64_t r = 0; r < noise.rows; ++r)
    for (int64_t column = 0; column < noise.columns; ++column) {
      const auto i = static_cast<size_t>(model.blocks.row(block, r) + column);
      if (model.rest[i] < 0) continue;
      const double c = noise.common[r * noise.columns + column];
      to.common_squares += c * c, along += c * summed_value(reference.mid[i]), sum += c;
    }
  to.common_along += std::fabs(along), to.common_sum += std::fabs(sum);
}

/// Adds those of sources that reach all that they are of; `far`: and more.
void add_products(const SampledMoments& sums, float scale, bool far, ExpectedErrors& to) {
  const double unscaled = 1 / static_cast<double>(scale), unscaled_square = unscaled * unscaled;
  size_t pair = 0;
  double square = 0;
  for (int a = 0; a < kNoiseSamples; ++a) {
    const auto i = static_cast<size_t>(a);
    const double squares = unscaled_square * static_cast<double>(sums.gram[a][a]) / kNoiseSamples;
    to.noise_squares += squares;
    if (far) to.far_squares += squares;
    to.along[i] += unscaled_square * static_cast<double>(sums.along[a]);
    to.summed[i] += unscaled * static_cast<double>(sums.summed[a]);
    for (int b = 0; b < a; ++b, ++pair) {
      const double product = unscaled_square * static_cast<double>(sums.gram[a][b]);
      square += product * product / static_cast<double>(ExpectedErrors::kPairs);
      if (far) to.products[pair] += product;
    }
  }
  if (far) return;
  to.near_square += square, to.largest_near_square = std::fmax(to.largest_near_square, square);
}

/// Of a row of samples, the elements that are judged.
void add_row(const Lanes* samples, int64_t columns, size_t flat, float scale,
             const ReferenceOutput& reference, const OutputModel& model, SampledMoments& sums) {
  const auto judged = [&](int64_t c) { return model.rest[flat + static_cast<size_t>(c)] >= 0; };
  std::vector<float> exact(static_cast<size_t>(columns));
  for (int64_t c = 0; c < columns; ++c)
    exact[static_cast<size_t>(c)] =
        static_cast<float>(reference.mid[flat + static_cast<size_t>(c)] * static_cast<double>(scale));
  for (int64_t first = 0, end = 0; first < columns; first = end + 1) {
    for (end = first; end < columns && judged(end);) ++end;
    sampled_loops().add_moments(samples + first, exact.data() + first, scale, end - first, sums);
  }
}

/// Adds one block's samples, of the elements that are judged.
void add_noise(const NoiseBlock& noise, const OutputBlock& block, const ReferenceOutput& reference,
               OutputModel& model) {
  ExpectedErrors& to = model.expected[static_cast<size_t>(&block - model.blocks.blocks().data())];
  add_rest(noise, block, reference, model);
  if (noise.common) add_common(noise, block, reference, model, to);
  const float scale = scale_of(block, reference, model);
  for (const float* const samples : {noise.near, noise.far}) {
    if (!samples) continue;
    const bool far = samples == noise.far && !noise.rows_apart;
    SampledMoments sums;
    for (int64_t r = 0; r < noise.rows; ++r) {
      add_row(reinterpret_cast<const Lanes*>(samples) + r * noise.columns, noise.columns,
              static_cast<size_t>(model.blocks.row(block, r)), scale, reference, model, sums);
      if (noise.rows_apart) add_products(sums, scale, far, to), sums = {};
    }
    add_products(sums, scale, far, to);
  }
}

/// Sums what needs no sample, with `rest` as the bounds that are left.
void add_rest(const ReferenceOutput& reference, const std::vector<double>& rest, OutputModel& model) {
  const std::vector<OutputBlock>& blocks = model.blocks.blocks();
  for (size_t b = 0; b < blocks.size(); ++b)
    for (int64_t r = 0; r < blocks[b].rows; ++r)
      for (int64_t c = 0; c < model.blocks.columns(); ++c) {
        const auto i = static_cast<size_t>(model.blocks.row(blocks[b], r) + c);
        take_rest(reference, i, rest[i], model, model.expected[b]);
      }
}

/// Multiplications of samples that one direction of a problem takes.
double work_of(const RoundingProblem& p, int64_t chunk, bool backward) {
  const Sizes& s = p.problem->sizes;
  const bool slots = std::any_of(p.op->inputs.begin(), p.op->inputs.end(),
                                 [](const ArgumentSpec& spec) { return spec.name == "s"; });
  const auto tokens = static_cast<double>(s.B * s.T * s.H), K = static_cast<double>(slots ? s.M : s.K),
             V = static_cast<double>(slots ? s.K + s.V : s.V),
             together = static_cast<double>(chunk > 0 ? std::min(chunk, s.T) : s.T);
  return tokens * (backward ? 10 * K * V + 2 * together * (2 * K + V) : 6 * K * V + together * (K + V));
}

/// One direction: its outputs' models.
class Direction {
 public:
  Direction(const RoundingProblem& p, bool backward, std::map<std::string, OutputModel>& models)
      : p_(p), backward_(backward), models_(models), u_(operand_roundoff(dtype())) {}

  void run(const std::vector<const ReferenceOutput*>& outputs) {
    const Problem& problem = *p_.problem;
    const bool rounds =
        backward_ ? rounds_operands(problem.adjoint, u_) : rounds_operands(problem.arithmetic, u_);
    const int64_t chunk = backward_ ? problem.adjoint.state.chunk : problem.arithmetic.chunk;
    const auto sample = backward_ ? p_.op->adjoint_noise : p_.op->forward_noise;
    // Where operands of chunks could be rounded, and none is declared to be, the samples say that none may.
    const bool could_round = sample && chunk > 0 && u_ < 1;
    const bool split =
        sample && chunk > 0 && u_ >= 1 && declares_truncations() && work_of(p_, chunk, backward_) <= p_.work;
    if (!rounds && !could_round && !split) {
      for (const ReferenceOutput* output : outputs) add_rest(*output, rests_of(*output), model(*output));
      return;
    }
    const char* const why =
        !sample           ? "the roundings inside this operator have no model"
        : rounds_states() ? "the roundings of a state in its operands' format have no model"
        : work_of(p_, chunk, backward_) > p_.work ? "too long for its roundings to be sampled"
                                                  : nullptr;
    if (why) {
      for (const ReferenceOutput* output : outputs) model(*output).skipped = why;
      return;
    }
    for (const ReferenceOutput* output : outputs) model(*output).operands = dtype();
    const bool any = sample_slices(outputs, sample);
    for (const ReferenceOutput* output : outputs)
      if ((!any && !rounds) || (split && !model(*output).skipped.empty()))
        model(*output).skipped = "", add_rest(*output, rests_of(*output), model(*output));
  }

 private:
  Dtype dtype() const {
    for (const ArgumentSpec& spec : p_.op->inputs)
      if (const auto found = p_.problem->inputs->find(std::string(spec.name));
          is_plain(spec.role) && found != p_.problem->inputs->end())
        return found->second.dtype;
    return Dtype::fp32;
  }
  bool rounds_states() const {
    const auto rounds = [&](const RecurrenceArithmetic& a) {
      return roundings_in(a.boundary, u_) > 0 || roundings_in(a.step, u_) > 0;
    };
    const Problem& p = *p_.problem;
    return backward_ ? rounds(p.adjoint.state) || rounds(p.adjoint.adjoint) : rounds(p.arithmetic);
  }
  bool declares_truncations() const {
    const Problem& p = *p_.problem;
    return backward_ ? p.adjoint.state.truncated > 0 && p.adjoint.adjoint.truncated > 0
                     : p.arithmetic.truncated > 0;
  }
  OutputModel& model(const ReferenceOutput& output) { return models_.at(output.name); }

  std::vector<double> rests_of(const ReferenceOutput& output) const {
    const ArgumentSpec* spec = nullptr;
    const std::vector<ArgumentSpec> all = backward_ ? p_.op->gradients() : p_.op->outputs;
    for (const ArgumentSpec& a : all)
      if (a.name == output.name) spec = &a;
    const bool gate = spec && spec->role == Role::log_decay;
    // Half a subnormal of the format is in the declared underflow already where it cannot be told.
    const double half = gate ? 0 : min_subnormal(dtype()) / 2;
    std::vector<double> rest(output.mid.size());
    for (size_t i = 0; i < rest.size(); ++i) rest[i] = without_storing(output, i, half);
    return rest;
  }

  /// False where there are no samples.
  bool sample_slices(const std::vector<const ReferenceOutput*>& outputs,
                     void (*sample)(const Problem&, const Slice&, const NoiseVisit&)) {
    std::map<std::string, bool, std::less<>> seen;
    for (const ReferenceOutput* output : outputs) seen[output->name] = false;
    std::mutex mutex;
    const std::vector<Slice> slices = slices_of(*p_.problem);
    parallel_for(static_cast<int64_t>(slices.size()), p_.problem->threads, [&](int64_t i) {
      const Slice& slice = slices[static_cast<size_t>(i)];
      std::map<std::string, CarriedSamples> carried;
      for (const ReferenceOutput* output : outputs) carried[output->name];
      sample(*p_.problem, slice, [&](const NoiseBlock& noise) {
        for (const ReferenceOutput* output : outputs) {
          if (output->name != noise.output) continue;
          OutputModel& to = model(*output);
          const OutputBlock* const block = to.blocks.find(slice.n, slice.h, noise.first);
          if (!block || block->rows != noise.rows || to.blocks.columns() != noise.columns) continue;
          add_noise(noise, *block, *output, to);
          if (noise.reads) carried.at(output->name).add(noise, *block, *output, to);
          const std::lock_guard lock(mutex);
          seen[output->name] = true;
        }
      });
      const std::lock_guard lock(mutex);
      for (auto& [name, samples] : carried)
        if (auto errors = std::move(samples).errors()) models_.at(name).carried.push_back(*std::move(errors));
    });
    const bool any = std::any_of(seen.begin(), seen.end(), [](const auto& output) { return output.second; });
    for (const ReferenceOutput* output : outputs)
      if (!seen[output->name] && !output->mid.empty())
        model(*output).skipped =
            any ? "a sum over the tokens of all sequences" : "no model of these inputs' roundings is known";
    return any;
  }

  const RoundingProblem& p_;
  const bool backward_;
  std::map<std::string, OutputModel>& models_;
  const double u_;
};

bool all_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x == 0; });
}

/// Significand bits behind the leading one.
uint64_t significand(const Tensor& x, int64_t flat) {
  return x.bits(flat) & ((uint64_t{1} << (format(x.dtype).precision - 1)) - 1);
}
uint64_t magnitude(const Tensor& x, int64_t flat) {
  return x.bits(flat) & ~(uint64_t{1} << (8 * format(x.dtype).bytes - 1));
}

/// Few significands among the values that are not zero, or few such values.
bool of_few_kinds(const Tensor& x) {
  constexpr int64_t kLooked = 4096;
  constexpr size_t kFew = 16;
  std::set<uint64_t> kinds;
  int64_t looked = 0;
  for (int64_t i = 0; i < x.size() && looked < kLooked && kinds.size() < kFew; ++i)
    if (magnitude(x, i) != 0) kinds.insert(significand(x, i)), ++looked;
  return looked > 0 && kinds.size() < kFew;
}

bool of_tokens(const Tensor& x) {
  return x.axes.size() >= 3 && x.axes[0].name == "B" && x.axes[1].name == "T";
}

/// Channels of fewer tokens are alike by chance.
constexpr int64_t kFewTokens = 8;

uint64_t hashed(uint64_t hash, uint64_t bits) {
  return (hash ^ bits) * 0x100000001b3 + (hash >> 29);
}

/// Of some elements' magnitudes.
struct Hash {
  uint64_t value = 0xcbf29ce484222325;
  bool zero = true;

  void add(uint64_t bits) { value = hashed(value, bits), zero = zero && bits == 0; }
};

template <typename Word>
void add_row(const Tensor& x, int64_t token, int64_t width, Hash* hashes, int64_t step) {
  constexpr auto sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  const Word* const row = x.as<Word>().data() + token * width;
  for (int64_t j = 0; j < width; ++j) hashes[j * step].add(static_cast<Word>(row[j] & ~sign));
}

/// Of a token's elements, each to a hash of its own (`step` 1), or all to one (0).
void add_row(const Tensor& x, int64_t token, int64_t width, Hash* hashes, int64_t step) {
  const int bytes = format(x.dtype).bytes;
  if (bytes == 2) return add_row<uint16_t>(x, token, width, hashes, step);
  if (bytes == 4) return add_row<uint32_t>(x, token, width, hashes, step);
  for (int64_t j = 0; j < width; ++j) hashes[j * step].add(magnitude(x, token * width + j));
}

/// Tokens, or channels over all tokens, that are alike but for signs, where they are more than one in 64.
std::string repeated(const std::vector<const Tensor*>& inputs, int64_t tokens, bool channels, int threads) {
  const int64_t count = channels ? inputs.front()->size() / tokens : tokens;
  std::vector<Hash> hashes(static_cast<size_t>(count));
  if (channels) {
    for (int64_t t = 0; t < tokens; ++t) add_row(*inputs.front(), t, count, hashes.data(), 1);
  } else {
    constexpr int64_t kOfPiece = 1024;
    parallel_for((tokens + kOfPiece - 1) / kOfPiece, threads, [&](int64_t piece) {
      for (int64_t t = piece * kOfPiece, end = std::min(t + kOfPiece, tokens); t < end; ++t)
        for (const Tensor* x : inputs) add_row(*x, t, x->size() / tokens, &hashes[static_cast<size_t>(t)], 0);
    });
  }
  std::vector<uint64_t> seen;
  for (const Hash& hash : hashes)
    if (!hash.zero) seen.push_back(hash.value);
  std::sort(seen.begin(), seen.end());
  const auto compared = std::ssize(seen), alike = seen.end() - std::unique(seen.begin(), seen.end());
  if (alike * 64 <= compared) return "";
  return fmt::format("{} of {} {}{} are alike", alike, compared, channels ? "channels of " : "tokens",
                     channels ? inputs.front()->name : "");
}

}  // namespace

void ExpectedErrors::add(const ExpectedErrors& x) {
  elements += x.elements, exact_squares += x.exact_squares;
  common_squares += x.common_squares, common_along += x.common_along, common_sum += x.common_sum;
  rest_squares += x.rest_squares, rest_along += x.rest_along, rest += x.rest;
  noise_squares += x.noise_squares;
  far_squares += x.far_squares, near_square += x.near_square,
      largest_near_square = std::fmax(largest_near_square, x.largest_near_square);
  for (size_t i = 0; i < kPairs; ++i) products[i] += x.products[i];
  for (size_t i = 0; i < along.size(); ++i) along[i] += x.along[i], summed[i] += x.summed[i];
}

std::string inputs_without_model(const Operator& op, const Problem& p) {
  std::vector<const Tensor*> inputs;
  std::vector<ArgumentSpec> specs = op.inputs;
  for (const ArgumentSpec& spec : op.cotangents()) specs.push_back(spec);
  for (const ArgumentSpec& spec : specs) {
    const auto found = p.inputs->find(std::string(spec.name));
    if (found == p.inputs->end() || spec.role == Role::log_decay || spec.role == Role::state) continue;
    if (of_few_kinds(found->second)) return fmt::format("{} has few significands", spec.name);
    if (of_tokens(found->second)) inputs.push_back(&found->second);
  }
  if (inputs.empty()) return "";
  const int64_t tokens = inputs.front()->axes[0].size * inputs.front()->axes[1].size;
  if (std::string text = repeated(inputs, tokens, false, p.threads); !text.empty()) return text;
  if (tokens < kFewTokens) return "";
  std::vector<std::string> texts(inputs.size());
  parallel_for(std::ssize(inputs), p.threads, [&](int64_t i) {
    texts[static_cast<size_t>(i)] = repeated({inputs[static_cast<size_t>(i)]}, tokens, true, 1);
  });
  for (std::string& text : texts)
    if (!text.empty()) return std::move(text);
  return "";
}

std::map<std::string, OutputModel> rounding_model(const RoundingProblem& p,
                                                  const ReferenceResult& reference) {
  std::map<std::string, OutputModel> models;
  std::vector<const ReferenceOutput*> forward, backward;
  const std::string inputs = p.work == 0 ? "not asked for" : inputs_without_model(*p.op, *p.problem);
  for (const ReferenceOutput& output : reference.outputs) {
    OutputModel& model =
        models
            .emplace(output.name, OutputModel(OutputBlocks(output.name, output.axes, p.problem->cu_seqlens)))
            .first->second;
    model.rest.assign(output.mid.size(), -1), model.threads = p.problem->threads;
    model.skipped = !inputs.empty() ? inputs : all_zero(output.bound) ? "nothing of it rounds" : "";
    if (!model.skipped.empty()) continue;
    const bool is_output = std::any_of(p.op->outputs.begin(), p.op->outputs.end(),
                                       [&](const ArgumentSpec& spec) { return spec.name == output.name; });
    (is_output ? forward : backward).push_back(&output);
  }
  if (!forward.empty()) Direction(p, false, models).run(forward);
  if (!backward.empty()) Direction(p, true, models).run(backward);
  return models;
}

}  // namespace assay
