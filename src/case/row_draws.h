// Draws of a row of channels at once, with the bits that RandomStream gives for each element alone. The same
// source is compiled for three instruction sets; operations and their order are those of random.cpp, none is
// fused, so that all three agree.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay {

struct RowDraws {
  std::string_view instruction_set;
  /// Element i has the counter `first + i * step` of the stream `key`.
  void (*uniforms)(uint64_t key, uint64_t first, uint64_t step, int64_t count, double* out);
  /// Each p in (0, 1) becomes the standard normal's quantile.
  void (*normal_quantiles)(int64_t count, double* p);
  /// Each x, |x| <= 700, becomes log(1 / (1 + e^-x)).
  void (*log_sigmoids)(int64_t count, double* x);
};

/// The widest that this processor runs.
const RowDraws& row_draws();
/// All that it runs, the baseline first.
std::vector<RowDraws> runnable_row_draws();

}  // namespace assay
