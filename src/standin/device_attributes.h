// What the runtime and the driver answer where a program asks for one attribute of its device.
#pragma once
#include <optional>

namespace assay::standin {

/// CUdevice_attribute and cudaDeviceAttr, which have the same numbers; nothing for one that is not known.
std::optional<int> device_attribute(int number);

}  // namespace assay::standin
