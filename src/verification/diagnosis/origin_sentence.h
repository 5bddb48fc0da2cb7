// The one line about an origin that a person reads first.
#pragma once
#include <string>

#include "src/verification/diagnosis/origin.h"

namespace assay {

/// "ex2.approx.f32 at kernels/gla/chunk.cu:142 got 130.2 and gave inf because g[b=0,t=16,h=0,k=3] = -90;
/// ...".
std::string origin_sentence(const OriginTrace&);

}  // namespace assay
