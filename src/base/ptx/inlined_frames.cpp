#include "src/base/ptx/inlined_frames.h"

#include <fmt/format.h>

namespace assay::ptx {

bool is_of_toolkit(const std::string& file) {
  for (const char* part : {"/crt/", "/targets/", "/include/cuda", "cuda_bf16.h", "cuda_fp16.h",
                           "math_functions", "intrinsics.hpp", "triton/language/"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

std::vector<std::string> inlined_frames(const Module& module, int32_t line) {
  std::vector<std::string> frames;
  if (line < 0 || module.lines[static_cast<size_t>(line)].inlined_at < 0) return frames;
  for (int32_t at = line; at >= 0; at = module.lines[static_cast<size_t>(at)].inlined_at) {
    const Line& frame = module.lines[static_cast<size_t>(at)];
    if (frame.file < 0) continue;
    const std::string& file = module.files[static_cast<size_t>(frame.file)];
    if (!is_of_toolkit(file)) frames.push_back(fmt::format("{}:{}", file, frame.line));
  }
  return frames;
}

}  // namespace assay::ptx
