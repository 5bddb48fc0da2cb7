// Capsules as files: a launch file, its PTX and its tensors with concrete values, in one ZIP archive. What is
// inside is a launch file like any other (examples/launch/README.md); nothing in it is executed but by the
// machine.
#pragma once
#include <string>

#include "src/capsule/launch_file.h"

namespace assay {

/// Writes the program at these sizes with the values that it has: launch.json, the PTX, inputs.safetensors
/// and, where there are some, recorded.safetensors. The same capsule gives the same bytes. Throws BadInput
/// where it cannot be written, or is larger than 4 GiB.
void write_capsule(const LaunchFile&, const Capsule&, const std::string& path);
/// The files of a folder with a launch.json, as one archive; what nobody names is left out.
void pack_capsule(const std::string& folder, const std::string& path);

}  // namespace assay
