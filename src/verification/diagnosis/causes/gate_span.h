// Which rows of a log decay an overflowing exponential spanned: the evidence most causes about decays rest
// on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "src/verification/diagnosis/diagnose.h"

namespace assay {

/// Rows [first, last] of gate `gate`, counted from the start of the output's sequence, whose summed decay is
/// minus the exponent (in nats). `output_row` and `length` are counted from that start, too.
struct GateSpan {
  std::string gate;
  int64_t first = 0, last = 0;
  int64_t output_row = 0, length = 0;
  double exponent = 0;  ///< nats; positive
  bool whole = false;   ///< every row that the exponential depended on sums to it, too
  bool of_state() const { return output_row == length; }
  bool later_than_output() const { return first > output_row; }
};

/// The span behind an exp-overflow: the gate elements that the exponential depended on, in one channel, whose
/// run of rows ending at the latest one sums to minus the argument (to 2^-8 of it, the error of 256 fp32
/// additions and a bf16 gate sum apart). None where the origin is no exponential overflow of a positive
/// argument, or no such run exists.
std::optional<GateSpan> gate_span(const Evidence&);

/// Is the walked element one of a gradient?
bool is_gradient(const Evidence&);

/// "rows 17 to 20" or "row 17".
std::string rows_text(const GateSpan&);

}  // namespace assay
