// The driver's functions that programs of the runtime ask for.
#pragma once
#include <optional>

namespace assay::standin {

/// By name, as cuGetProcAddress takes it; null: not there.
void* driver_function(const char* name);
/// CUdevice_attribute and cudaDeviceAttr, which have the same numbers; nothing for one that is not known.
std::optional<int> device_attribute(int number);

}  // namespace assay::standin
