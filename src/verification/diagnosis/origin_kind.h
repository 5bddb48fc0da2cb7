// The kind of an origin, from the instruction and its operands.
#pragma once
#include <string>

#include "src/base/ptx/form.h"
#include "src/base/vm/recording.h"

namespace assay {

/// "exp-overflow", "zero-times-infinity", "infinity-minus-infinity", "division-by-zero",
/// "logarithm-of-zero", "conversion-overflow", "accumulation-overflow", "negative-argument" (a root or logarithm),
/// "infinity-divided-by-infinity", "infinite-argument" (sine and cosine), or of a value from outside
/// "literal", "input", "unwritten-memory".
std::string origin_kind(const ptx::Form&, const vm::Event&);
std::string kind_of(vm::Source);

}  // namespace assay
