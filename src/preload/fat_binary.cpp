#include "src/preload/fat_binary.h"

#include <cstdint>
#include <cstring>
#include <map>

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

/// What src/base/ptx/fatbin.cpp says of entries.
struct Entry {
  size_t at, header;
  uint16_t kind;
  uint32_t capability;
};
constexpr uint16_t kText = 1, kCode = 2;

std::vector<Entry> entries_of(const std::byte* bytes, size_t header, size_t size) {
  std::vector<Entry> made;
  for (size_t at = header; at < size; at += made.back().header + read<uint64_t>(bytes + at + 8))
    made.push_back(
        {at, read<uint32_t>(bytes + at + 4), read<uint16_t>(bytes + at), read<uint32_t>(bytes + at + 28)});
  return made;
}

/// The entry with other contents, which are not packed.
void append(std::vector<std::byte>& made, const std::byte* bytes, const Entry& entry,
            const std::string& contents) {
  const size_t length = (contents.size() + 7) / 8 * 8, begin = made.size();
  made.insert(made.end(), bytes + entry.at, bytes + entry.at + entry.header);
  put<uint64_t>(made.data() + begin + 8, length);
  put<uint32_t>(made.data() + begin + 16, 0);
  put<uint64_t>(made.data() + begin + 40, read<uint64_t>(bytes + entry.at + 40) & ~kPacked);
  put<uint64_t>(made.data() + begin + 56, 0);
  const auto* const from = reinterpret_cast<const std::byte*>(contents.data());
  made.insert(made.end(), from, from + contents.size());
  made.resize(begin + entry.header + length);
}

}  // namespace

size_t fat_binary_bytes(const void* data) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (!data || read<uint32_t>(bytes) != kMagic) return 0;
  return read<uint16_t>(bytes + 6) + read<uint64_t>(bytes + 8);
}

std::vector<std::byte> with_texts(const void* data, const Change& change, const Compiled& compiled) {
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
  std::map<uint32_t, std::string> changed;  // by compute capability
  size_t next = 0;
  const std::vector<Entry> entries = entries_of(bytes, header, size);
  for (const Entry& entry : entries)
    if (entry.kind == kText && next < texts.size()) {
      std::string& text = changed[entry.capability] = change(texts[next].text, texts[next].path);
      ++next;
      append(made, bytes, entry, text + '\0');
    }
  for (const Entry& entry : entries)
    if (const auto text = changed.find(entry.capability); entry.kind == kCode && text != changed.end())
      if (const std::string code = compiled(text->second, static_cast<int>(entry.capability)); !code.empty())
        append(made, bytes, entry, code);
  put<uint64_t>(made.data() + 8, made.size() - header);
  return made;
}

}  // namespace assay::preload
