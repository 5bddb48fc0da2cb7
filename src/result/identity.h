// What makes two findings of different runs the same one.
#pragma once
#include <string>
#include <string_view>

#include "src/result/verification.h"

namespace assay {

/// Kernel, cause and first-ranked diagnosis. It has no seed, no sizes and no tensor values, and where the
/// text of the cause's source line is known that stands in place of its number: lines added above do not make
/// a finding a new one. Empty for a run without a finding.
std::string identity_of(const Verification&);

/// 16 hexadecimal digits of a text (64-bit FNV-1a), the same on every host.
std::string fingerprint(std::string_view text);

}  // namespace assay
