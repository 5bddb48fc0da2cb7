#include "src/cli/missing_lines.h"

#include <fmt/format.h>

#include <filesystem>

#include "src/base/tensor/tensor_file.h"

namespace assay::cli {

void note_missing_lines(const std::string& ptx) {
  if (ptx.empty() || std::filesystem::is_directory(ptx)) return;
  if (read_file(ptx).find(".loc") != std::string::npos) return;
  fmt::print(stderr,
             "assay: {} has no source lines: findings name lines of the PTX; compile it with nvcc -lineinfo "
             "(clang: -gline-tables-only)\n",
             ptx);
}

}  // namespace assay::cli
