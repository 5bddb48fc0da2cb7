// Which writes of a register an instruction can read, along the ways through a function.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay {

class ValueRanges;

/// Instructions whose value of `reg` can be what instruction `at` reads; nothing where there is a way from
/// the function's entry on which nothing writes it.
std::optional<std::vector<int32_t>> reaching_writes(ValueRanges&, int32_t at, int32_t reg);

}  // namespace assay
