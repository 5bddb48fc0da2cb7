// What a store's address is made of: by all definitions of the registers behind it, whichever of them ran.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

/// In a loop that the store stands in, the statement behind it that moves its address on: where the source is
/// there, one with += or -= that is no loop's head.
std::optional<ChainLink> address_mover(const ptx::Module&, int32_t function, int32_t store,
                                       const SourceText&);

/// Statements above the store's in its source that compute the address, the nearest first; where both are of
/// inlined code, those beside its call before those beside its line in there.
std::vector<ChainLink> makers_above(const ptx::Module&, int32_t function, int32_t store, const SourceText&);

/// Where the block's index is divided into what the address is made of, the statement that makes the divisor.
std::optional<ChainLink> block_divider(const ptx::Module&, int32_t function, int32_t store,
                                       const SourceText&);

/// Stores, ascending, whose address begins at what is loaded from a byte of a parameter.
std::vector<int32_t> stores_through(const ptx::Module&, int32_t function, int32_t parameter, int64_t offset);

}  // namespace assay
