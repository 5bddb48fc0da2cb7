// Other values for a program's tensors than those that were drawn, within what its launch file says of them.
#pragma once
#include <string>
#include <vector>

#include "src/capsule/capsule.h"

namespace assay {

/// Names of variations: "zeros", "equal", "spike" (one element 64 times as large, or at the end of its
/// range),
/// "negative", "lowest" and "highest" (of a range).
std::vector<std::string> variations_of(const Capsule&, const std::string& tensor);
/// "x=spike,y=zeros". Tensors that are listed or read from files have none. Throws BadInput for a tensor or a
/// variation that there is not.
void vary(Capsule&, const std::string& text);

}  // namespace assay
