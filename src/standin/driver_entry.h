// The driver's functions that programs of the runtime ask for.
#pragma once

namespace assay::standin {

/// By name, as cuGetProcAddress takes it; null: not there.
void* driver_function(const char* name);

}  // namespace assay::standin
