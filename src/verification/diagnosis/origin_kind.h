// The kind of an origin, from the instruction and its operands.
#pragma once
#include <string_view>

#include "src/base/vm/recording.h"
#include "src/result/origin.h"

namespace assay {

OriginKind origin_kind(std::string_view opcode, const vm::Event&);
OriginKind kind_of(vm::Source);

}  // namespace assay
