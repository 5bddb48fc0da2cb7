#include "src/cli/missing_lines.h"

#include <fmt/format.h>

#include <filesystem>

#include "src/base/tensor/tensor_file.h"

namespace assay::cli {

namespace {

/// A .loc, which a .local is not.
bool has_lines(const std::string& text) {
  for (size_t at = 0; (at = text.find(".loc", at)) != text.npos; at += 4)
    if (at + 4 < text.size() && (text[at + 4] == ' ' || text[at + 4] == '\t')) return true;
  return false;
}

}  // namespace

void note_missing_lines(const std::string& ptx) {
  if (ptx.empty() || std::filesystem::is_directory(ptx)) return;
  if (has_lines(read_file(ptx))) return;
  fmt::print(stderr,
             "assay: {} has no source lines: findings name lines of the PTX; compile it with nvcc -lineinfo "
             "(clang: -gline-tables-only)\n",
             ptx);
}

}  // namespace assay::cli
