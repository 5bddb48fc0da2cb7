// A kernel whose formula is off by a factor.
#pragma once
#include <cstring>
#include <string>

#include "kernels/kernel.h"

namespace assay {

/// The kernel with its scale, an fp32 argument, so much too large.
inline Kernel scaled_kernel(const std::string& name, float factor) {
  Kernel kernel = find_kernel(name);
  kernel.plan = [plan = kernel.plan, factor](const auto&... of) {
    Program program = plan(of...);
    for (Launch& launch : program.launches)
      for (Argument& argument : launch.arguments) {
        if (argument.content != Argument::Content::real || argument.bytes.size() != 4) continue;
        float value = 0;
        std::memcpy(&value, argument.bytes.data(), sizeof value);
        argument = Argument(value * factor);
      }
    return program;
  };
  return kernel;
}

}  // namespace assay
