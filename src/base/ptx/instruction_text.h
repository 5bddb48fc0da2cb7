// An instruction as PTX spells it.
#pragma once
#include <string>

#include "src/base/ptx/program.h"

namespace assay::ptx {

/// "ex2.approx.f32 %f3, %f2".
std::string instruction_text(const Function&, const Instruction&);

}  // namespace assay::ptx
