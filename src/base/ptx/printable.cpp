#include "src/base/ptx/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace assay::ptx {
namespace {

/// Bytes of the UTF-8 character that `text` begins with (RFC 3629); 0: none, or one that does not print.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const uint32_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  const size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0u) != 0x80) return 0;
  if (bytes == 2 && first == 0xc2 && byte(1) < 0xa0) return 0;  // C1 controls
  if (bytes == 3 && ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0))) return 0;
  if (bytes == 4 && ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90))) return 0;
  return bytes;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const size_t bytes = character(name);
    if (bytes == 0)
      text += fmt::format("\\x{:02x}", static_cast<uint8_t>(name[0]));
    else
      text += name.substr(0, bytes);
    name.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return text;
}

}  // namespace assay::ptx
