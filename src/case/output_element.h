// Elements of a run's outputs as people write them.
#pragma once
#include <string>
#include <utility>

#include "src/case/case.h"

namespace assay {

/// Flat element of "o[0,16,0,3]" or "o[b=0,t=16,h=0,v=3]", as (output, element). Throws BadInput.
std::pair<std::string, int64_t> parse_element(const std::string& text, const Case&, const Operator&);

}  // namespace assay
