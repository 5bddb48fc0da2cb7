// Number formats: one row per format; encode, decode and rounding follow from the row.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay {

/// Element types of tensors and of tensor-core operands. Integers are here because tensors (cu_seqlens) hold
/// them.
enum class Dtype : uint8_t { fp64, fp32, tf32, fp16, bf16, i32, i64, u8 };

/// One number format. `precision` counts the leading bit (fp32: 24); it is 0 for integers.
struct Format {
  Dtype dtype;
  std::string_view name;
  int bytes;      ///< storage size; tf32 is stored as fp32 (4)
  int precision;  ///< significand bits p, leading bit included; unit roundoff u = 2^-p
  int exponent_bits;
  int min_exponent;  ///< exponent of the smallest normal, as in 1.f * 2^e
  int max_exponent;  ///< exponent of the largest finite number
};

/// All formats, in the order of Dtype.
const std::array<Format, 8>& formats();
const Format& format(Dtype dtype);
/// Row by name ("bf16"); throws BadInput naming the known formats.
const Format& format(std::string_view name);

/// Unit roundoff 2^-p of round-to-nearest in the format.
double unit_roundoff(Dtype dtype);
/// Smallest positive subnormal.
double min_subnormal(Dtype dtype);
double max_finite(Dtype dtype);

/// Bits -> value. Exact for every format up to fp64. NaN for NaN.
double decode(Dtype dtype, uint64_t bits);
/// Value -> bits, one rounding to nearest, ties to even; overflow gives infinity; subnormals are kept.
uint64_t encode(Dtype dtype, double value);
/// The same of `count` values, stored one behind the other in the format's bytes.
void encode_run(Dtype dtype, const double* values, int64_t count, std::byte* out);
/// decode(encode(value)): `value` rounded once to the format.
double round_to(Dtype dtype, double value);
/// Distance between `x` and its neighbour away from zero, in the format (2^(e-p+1); the subnormal spacing
/// near 0).
double ulp(Dtype dtype, double x);

}  // namespace assay
