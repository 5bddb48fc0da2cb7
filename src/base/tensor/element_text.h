// "o[0,16,0,3]": one element of a tensor, as people write it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"

namespace assay {

/// Flat element of "o[0,16,0,3]" or "o[b=0,t=16,h=0,v=3]". Throws BadInput where it is not written so, or
/// outside the axes.
int64_t flat_element(const std::string& text, const std::vector<Axis>& axes);

}  // namespace assay
