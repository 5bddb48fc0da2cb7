// What the tables of meanings share: variants made from a changed input, from index maps and from token
// patterns.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "src/verification/diagnosis/meaning.h"
#include "src/verification/diagnosis/schedule.h"

namespace assay {

using TensorChange = std::function<Tensor(const Tensor&)>;

/// The operator itself on an input changed so.
Variant on_input(const FailingRun&, std::string text, const std::string& input, const TensorChange&);
/// Both of an input and, for a schedule, everything else as it is.
Variant on_schedule(const FailingRun&, std::string text, const Schedule&);

/// Which index is read in place of i.
struct IndexMap {
  std::string text;  ///< "0 for all"
  std::function<int64_t(int64_t)> from;
};
/// 0 for all, the next, the one before, in reverse: those that differ for so many.
std::vector<IndexMap> index_maps(int64_t size);

/// Position of the axis of heads, or -1.
int head_axis(const Tensor&);
/// Tokens of each sequence moved by `by` (1: from the token before); the first or last ones are zero, or
/// kept.
Tensor moved_in_time(const FailingRun&, const Tensor&, int64_t by, bool keep_ends);
/// Tokens of each chunk of C of a sequence moved so, the outermost kept.
Tensor moved_in_chunks(const FailingRun&, const Tensor&, int64_t by, int64_t C);
/// An input whose tokens of a block, of a few sizes, are all its first, or its last.
std::vector<Variant> of_one_token_of_each_block(const FailingRun&, const std::string& input);
/// The elements of the tokens for which `at` holds times `factor`.
Tensor times_at(const FailingRun&, const Tensor&, double factor,
                const std::function<bool(const TokenPlace&)>& at);
/// Tokens or states of other sequences: `from(n)` in place of n.
Tensor of_sequences(const FailingRun&, const Tensor&, const std::function<int64_t(int64_t)>& from);
/// To a format, to the nearest, or towards zero: what a mask or a shift of the bits leaves.
enum class Narrowing { nearest, towards_zero };
double narrowed(Dtype, double, Narrowing);
std::string text_of(Narrowing, Dtype);
Tensor rounded_to(const Tensor&, Dtype, Narrowing = Narrowing::nearest);
/// Elements as if the memory held the axes a and b in the other order.
Tensor with_axes_exchanged(const Tensor&, size_t a, size_t b);
Tensor zeros(const Tensor&);

/// Elements per token behind a tensor's axis T; 0 where it has none.
int64_t token_width(const Tensor&);

/// Some indices of an axis.
struct Slab {
  std::string text;
  std::function<bool(int64_t)> kept;
};
/// Ends of an axis; tiles of common sizes at its ends; first and last ones of every tile, and all others.
std::vector<Slab> slabs_of(int64_t size);

/// Are all wrong outputs gradients of parameters, which sum over tokens and sequences?
bool only_sums_are_wrong(const FailingRun&);

/// Which tokens something happens at.
struct Pattern {
  std::string text;  ///< "at the first token of every 64"
  std::function<bool(const TokenPlace&)> holds;
  double choices = 1;
};
/// Chunk sizes that kernels take, shorter than the longest sequence.
std::vector<int64_t> chunk_sizes(const FailingRun&);
/// Every token; first and last tokens of chunks; the last, partial chunk; the first and the last token.
std::vector<Pattern> common_patterns(const FailingRun&);
/// One token of every sequence, those nearest to the first wrong one first, at most `most`.
std::vector<Pattern> single_tokens(const FailingRun&, size_t most);

/// Variants of a schedule that differs from the operator's at the tokens of each pattern.
std::vector<Variant> at_patterns(const FailingRun&, const std::vector<Pattern>&, const std::string& text,
                                 const std::function<Events(const TokenPlace&)>& events);

/// What a fitted weight leaves open of what it multiplies, on real numbers, where nothing else is.
double left_by_fit(const FailingRun&, const std::string& output, double value);

void append(std::vector<Variant>& to, std::vector<Variant> more);

}  // namespace assay
