// Which forms exist on which architecture. The patterns of rows are regular where PTX is not: what they spell
// and PTX lacks is taken out here.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::vm {

/// The architectures that the machine models, as numbers; statuses are given for each (machine.h).
inline constexpr int architectures[] = {80, 89, 90};

/// Least architecture that has a form: 80 (or older), 89, 90, 100 (none that is modelled); 0: PTX has no such
/// form.
int least_architecture(std::string_view form);

/// "a{b,c}" -> "ab", "ac".
std::vector<std::string> alternatives(const std::string& pattern);

}  // namespace assay::vm
