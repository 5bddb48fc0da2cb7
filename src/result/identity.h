// What makes two findings of different runs the same one.
#pragma once
#include <string>
#include <string_view>

#include "src/result/verification.h"

namespace assay {

/// Kernel, cause and first-ranked diagnosis. It has no seed, no sizes and no tensor values, and where the
/// text of the cause's source line is known its shape (shape_of) stands in place of its number: lines added
/// above, and names changed, do not make a finding a new one. Empty for a run without a finding.
std::string identity_of(const Verification&);
/// Whether the first diagnosis says more than that there is a fault: else a run with more time may name it.
bool names_its_cause(const Verification&);
/// The same without the diagnosis, which a run out of time has not come to.
std::string undiagnosed_identity_of(const Verification&);
/// The name that an identity ends with, of a finding of this kernel and cause; empty where it has none.
std::string name_in(const std::string& identity, const std::string& kernel, const std::string& cause);

/// A line of source without what people change for looks: blanks, comments, and the names of variables, which
/// are numbered as they come: "s *= exp2f(x) * s;" -> "$1 *= exp2f($2) * $1;". Names of types, functions and
/// members stay.
std::string shape_of(std::string_view line);

/// 16 hexadecimal digits of a text (64-bit FNV-1a), the same on every host.
std::string fingerprint(std::string_view text);

}  // namespace assay
