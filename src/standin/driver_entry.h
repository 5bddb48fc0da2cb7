// The driver's functions that programs of the runtime ask for.
#pragma once

namespace assay::standin {

/// By name, as cuGetProcAddress takes it; null: not there.
void* driver_function(const char* name);
/// CUdevice_attribute and cudaDeviceAttr, which have the same numbers. `known`: else the answer is 0.
int device_attribute(int number, bool& known);

}  // namespace assay::standin
