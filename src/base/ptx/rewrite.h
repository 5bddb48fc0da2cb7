// Rewriting PTX text.
#pragma once
#include <string>
#include <string_view>

namespace assay::ptx {

/// Gives every mul, add, sub and mad on f32, f64 and packed or half floats that has no rounding modifier the
/// `.rn` that it means (mad on floats becomes fma.rn), so that the driver may not contract it. Comments and
/// everything else stay as is.
std::string make_rounding_explicit(std::string_view text);

}  // namespace assay::ptx
