#include "src/base/backend/gpu_binary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/base/numerics/bad_input.h"

namespace assay {

GpuBinary read_gpu_binary(const std::string& argument) {
  GpuBinary binary;
  const size_t equals = argument.find('=');
  const bool named = equals != std::string::npos && !std::filesystem::exists(argument);
  if (named) binary.module = argument.substr(0, equals);
  binary.path = named ? argument.substr(equals + 1) : argument;
  std::ifstream file(binary.path, std::ios::binary);
  if (!file) throw BadInput(fmt::format("--cubin {}: cannot be read", binary.path));
  binary.bytes.assign(std::istreambuf_iterator<char>(file), {});
  const bool elf = binary.bytes.starts_with(
                 "\x7f"
                 "ELF"),
             fatbin = binary.bytes.starts_with("\x50\xed\x55\xba");
  if (!elf && !fatbin)
    throw BadInput(
        fmt::format("--cubin {}: neither a cubin nor a fatbin; nvcc -cubin makes one", binary.path));
  return binary;
}

const GpuBinary* binary_for(const std::vector<GpuBinary>& binaries, const Program& program,
                            const std::string& module) {
  std::vector<std::string> names;
  for (const Module& m : program.modules) names.push_back(m.name);
  for (const GpuBinary& binary : binaries) {
    const bool known = std::find(names.begin(), names.end(), binary.module) != names.end();
    if (binary.module.empty() ? names.size() != 1 : !known)
      throw BadInput(fmt::format(
          "--cubin {}: {} has the modules {}; say which it stands for, as in --cubin {}={}", binary.path,
          program.name, fmt::join(names, ", "), names.empty() ? "MODULE" : names.front(), binary.path));
    if (binary.module.empty() || binary.module == module) return &binary;
  }
  return nullptr;
}

}  // namespace assay
