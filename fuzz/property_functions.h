// The functions behind the rows of properties.def, and what they share. Each pair stands in one of the files
// *_properties.cpp.
#pragma once
#include <optional>
#include <string>

#include "fuzz/bit_comparison.h"
#include "fuzz/properties.h"

namespace assay {

#define PROPERTY(stem, name, share, summary)                                \
  bool stem##_applies(const Verification&, const Kernel&, const Operator&); \
  Failure stem(PropertyRun&);
#include "fuzz/properties.def"
#undef PROPERTY

bool packed(const Case&);
/// The operator's first optional input of this role, or null.
const ArgumentSpec* optional_input(const Operator&, Role);

}  // namespace assay
