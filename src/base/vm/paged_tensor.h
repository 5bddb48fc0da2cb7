// Tensors too large to be held: their bytes are made page by page, and what nothing touched is as it was
// before.
#pragma once
#include <cstdint>
#include <memory>

#include "src/base/tensor/tensor.h"
#include "src/base/vm/paged_bytes.h"

namespace assay::vm {

/// Pages of the byte alone.
std::shared_ptr<PagedBytes> poisoned_pages(uint8_t byte);
/// Pages of a tensor's own elements.
std::shared_ptr<PagedBytes> pages_of(const Tensor&);

/// Elements of the byte alone, as Program::poison fills outputs and workspaces that are held.
std::shared_ptr<const TensorSource> poisoned_elements(Dtype, uint8_t byte);
/// What pages hold, and behind those that nothing has touched what was there before.
std::shared_ptr<const TensorSource> paged_elements(std::shared_ptr<const PagedBytes>,
                                                   std::shared_ptr<const TensorSource> before, Dtype,
                                                   int64_t size);

}  // namespace assay::vm
