// The kind of an origin, from the instruction and its operands.
#pragma once

#include "src/base/ptx/form.h"
#include "src/base/vm/recording.h"
#include "src/result/origin.h"

namespace assay {

OriginKind origin_kind(const ptx::Form&, const vm::Event&);
OriginKind kind_of(vm::Source);

}  // namespace assay
