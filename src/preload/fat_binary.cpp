#include "src/preload/fat_binary.h"

#include <cstdint>
#include <cstring>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/fatbin.h"

namespace assay::preload {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint64_t kPacked = 0x2000 | 0x8000;

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

size_t fat_binary_bytes(const void* data) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (!data || read<uint32_t>(bytes) != kMagic) return 0;
  return read<uint16_t>(bytes + 6) + read<uint64_t>(bytes + 8);
}

std::vector<std::byte> with_texts(
    const void* data, const std::function<std::string(const std::string&, const std::string&)>& change) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  const size_t size = fat_binary_bytes(data);
  std::vector<ptx::EmbeddedText> texts;
  try {
    texts = ptx::embedded_texts({reinterpret_cast<const char*>(bytes), size}, "fat binary");
  } catch (const BadInput&) {
    return {};
  }
  const size_t header = read<uint16_t>(bytes + 6);
  std::vector<std::byte> made(bytes, bytes + header);
  size_t next = 0;
  for (size_t at = header; at < size;) {
    const size_t entry_header = read<uint32_t>(bytes + at + 4), padded = read<uint64_t>(bytes + at + 8);
    if (read<uint16_t>(bytes + at) == 1 && next < texts.size()) {
      const std::string text = change(texts[next].text, texts[next].path);
      ++next;
      const size_t length = (text.size() + 1 + 7) / 8 * 8, begin = made.size();
      made.insert(made.end(), bytes + at, bytes + at + entry_header);
      put<uint64_t>(made.data() + begin + 8, length);
      put<uint32_t>(made.data() + begin + 16, 0);
      put<uint64_t>(made.data() + begin + 40, read<uint64_t>(bytes + at + 40) & ~kPacked);
      put<uint64_t>(made.data() + begin + 56, 0);
      const auto* const from = reinterpret_cast<const std::byte*>(text.data());
      made.insert(made.end(), from, from + text.size());
      made.resize(begin + entry_header + length);
    }
    at += entry_header + padded;
  }
  put<uint64_t>(made.data() + 8, made.size() - header);
  return made;
}

}  // namespace assay::preload
