// Float arithmetic that rounds nothing, read off a function's text.
#pragma once
#include <cstdint>
#include <optional>

#include "src/campaign/mutate/value_range.h"

namespace assay {

/// Is the instruction x - h, with h the tf32 nearest to x? It is exact: h's error is at most half of the 13th
/// bit below x's last of tf32, and a multiple of x's last, so that fp32 holds it (Sterbenz; Dekker's split).
bool is_rest_of_split(ValueRanges&, int32_t instruction);

/// Is all that reads the register a rounding to bf16, to nearest, or a copy of which the same holds? What is
/// rounded to bf16 already stays as it is.
bool is_rounded_to_bf16_only(const ValueRanges&, int32_t reg);

/// Bits of significand, its leading one among them, that suffice for all that an operand of an instruction
/// can be: of what comes from fp16 or bf16, and of literals; 24 where nothing says that fewer do.
int significant_bits(ValueRanges&, int32_t instruction, const ptx::Operand&);

/// What add, sub or mul of fp32, or a conversion to tf32, bf16 or f16, gives for these operands where nothing
/// has to be rounded: so in every direction but down, which makes zeros of the other sign.
std::optional<uint32_t> exact_result(const ptx::Instruction&, const std::vector<uint32_t>& operands);

}  // namespace assay
