// The containers as nvcc 11 to 13 write them:
//   fat binary  magic 0xba55ed50, u16 version, u16 size of this header, u64 size of the entries behind it
//   entry       u16 kind (1: PTX, 2: machine code), u16 version, u32 size of this header, u64 size of the
//               contents with padding; at 16 u32 their packed size; at 28 u32 architecture; at 40 u64 flags
//               (0x2000: LZ4, 0x8000: zstd); at 56 u64 their size unpacked
//   ELF         sections .nv_fatbin and __nv_relfatbin: fat binaries one after another
#include "src/base/ptx/fatbin.h"

#include <elf.h>
#include <fmt/format.h>
#include <zstd.h>

#include <cstring>
#include <map>
#include <optional>

#include "src/base/numerics/bad_input.h"

namespace assay::ptx {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;
constexpr uint64_t kLargestText = uint64_t{1} << 28, kLargestTexts = uint64_t{1} << 30;

/// Reads within bounds.
class Bytes {
 public:
  Bytes(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      damaged(fmt::format("{} bytes at {} lie beyond its end", size, offset));
    return bytes_.substr(offset, size);
  }
  Bytes within(uint64_t offset, uint64_t size) const { return {part(offset, size), path_}; }
  uint64_t size() const { return bytes_.size(); }
  [[noreturn]] void damaged(const std::string& what) const {
    throw BadInput(path_ + ": a damaged container of device code: " + what);
  }

 private:
  std::string_view bytes_;
  const std::string& path_;
};

/// A block of LZ4 (lz4_Block_format.md): literals, then a match in what is there already, and so on. Nothing
/// where it does not give `size` bytes.
std::optional<std::string> unpack_lz4(std::string_view packed, uint64_t size) {
  std::string text;
  size_t at = 0;
  const auto length = [&](size_t nibble) -> std::optional<size_t> {
    size_t sum = nibble;
    for (uint8_t more = 255; nibble == 15 && more == 255; sum += more) {
      if (at == packed.size()) return std::nullopt;
      more = static_cast<uint8_t>(packed[at++]);
    }
    return sum;
  };
  while (at < packed.size()) {
    const auto token = static_cast<uint8_t>(packed[at++]);
    const std::optional<size_t> literals = length(token >> 4);
    if (!literals || *literals > packed.size() - at || *literals > size - text.size()) return std::nullopt;
    text += packed.substr(at, *literals);
    at += *literals;
    if (text.size() == size || packed.size() - at < 2) break;
    const size_t back = static_cast<uint8_t>(packed[at]) + 256u * static_cast<uint8_t>(packed[at + 1]);
    at += 2;
    const std::optional<size_t> rest = length(token & 15);
    if (!rest || back == 0 || back > text.size() || *rest + 4 > size - text.size()) return std::nullopt;
    for (size_t i = 0; i < *rest + 4; ++i) text += text[text.size() - back];  // they may overlap
  }
  if (text.size() != size) return std::nullopt;
  return text;
}

std::optional<std::string> unpack_zstd(std::string_view packed, uint64_t size) {
  std::string text(size, '\0');
  const size_t written = ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size());
  if (ZSTD_isError(written) || written != size) return std::nullopt;
  return text;
}

struct Found {
  std::vector<EmbeddedText> texts;
  uint64_t bytes = 0;
  std::string machine_code;                      ///< "sm_80, sm_90": of what is no PTX
  std::vector<std::string>* binaries = nullptr;  ///< where machine code is collected, if it is
};

std::string contents_of(const Bytes& entry, uint64_t header, uint64_t padded, Found& found) {
  const uint64_t flags = entry.at<uint64_t>(40), packed = entry.at<uint32_t>(16),
                 size = entry.at<uint64_t>(56);
  const bool is_packed = (flags & (kLz4 | kZstd)) != 0;
  const uint64_t bytes = is_packed ? size : padded;
  if (bytes > kLargestText || found.bytes + bytes > kLargestTexts)
    entry.damaged(fmt::format("a text of {} bytes", bytes));
  found.bytes += bytes;
  std::string text;
  if (!is_packed) {
    text = entry.part(header, padded);
  } else {
    if (packed > padded) entry.damaged(fmt::format("{} packed bytes in {}", packed, padded));
    std::optional<std::string> unpacked = flags & kZstd ? unpack_zstd(entry.part(header, packed), size)
                                                        : unpack_lz4(entry.part(header, packed), size);
    if (!unpacked)
      entry.damaged(fmt::format("a text packed with {} cannot be unpacked", flags & kZstd ? "zstd" : "LZ4"));
    text = std::move(*unpacked);
  }
  return text;
}

std::string text_of(const Bytes& entry, uint64_t header, uint64_t padded, Found& found) {
  const std::string text = contents_of(entry, header, padded, found);
  return text.substr(0, text.find('\0'));
}

void read_fat_binary(const Bytes& entries, const std::string& path, Found& found) {
  for (uint64_t at = 0; at < entries.size();) {
    const auto kind = entries.at<uint16_t>(at);
    const auto header = entries.at<uint32_t>(at + 4);
    const auto padded = entries.at<uint64_t>(at + 8);
    if (header < 64) entries.damaged(fmt::format("an entry whose header has {} bytes", header));
    if (padded > entries.size()) entries.damaged(fmt::format("an entry of {} bytes", padded));
    const Bytes entry = entries.within(at, header + padded);
    const auto architecture = entry.at<uint32_t>(28);
    if (kind == 1)
      found.texts.push_back(
          {fmt::format("{}:compute_{}", path, architecture), text_of(entry, header, padded, found)});
    else if (found.binaries)
      found.binaries->push_back(contents_of(entry, header, padded, found));
    else
      found.machine_code += fmt::format("{}sm_{}", found.machine_code.empty() ? "" : ", ", architecture);
    at += header + padded;
  }
}

/// Fat binaries one after another, with zeros between them.
void read_fat_binaries(const Bytes& section, const std::string& path, Found& found) {
  for (uint64_t at = 0; at + 16 <= section.size();) {
    if (section.at<uint32_t>(at) != kMagic) {
      if (section.at<uint32_t>(at) != 0) section.damaged(fmt::format("no fat binary at {}", at));
      at += 4;
      continue;
    }
    const auto header = section.at<uint16_t>(at + 6);
    const auto size = section.at<uint64_t>(at + 8);
    if (header < 16) section.damaged(fmt::format("a header of {} bytes", header));
    section.part(at, header);
    read_fat_binary(section.within(at + header, size), path, found);
    at += header + size;
  }
}

void read_elf(const Bytes& file, const std::string& path, Found& found) {
  const auto head = file.at<Elf64_Ehdr>(0);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
    throw BadInput(path + ": an ELF file that is not of 64 bits, the low byte first");
  if (head.e_shoff == 0) return;
  const auto section = [&](uint64_t index) {
    if (index >= head.e_shnum || head.e_shentsize < sizeof(Elf64_Shdr))
      file.damaged(fmt::format("there is no section {}", index));
    return file.within(head.e_shoff, uint64_t{head.e_shnum} * head.e_shentsize)
        .at<Elf64_Shdr>(index * head.e_shentsize);
  };
  const auto names = section(head.e_shstrndx);
  const Bytes texts = file.within(names.sh_offset, names.sh_size);
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    const auto s = section(i);
    if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) continue;
    const std::string_view rest =
        texts.part(s.sh_name, texts.size() - std::min<uint64_t>(s.sh_name, texts.size()));
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (name == ".nv_fatbin" || name == "__nv_relfatbin")
      read_fat_binaries(file.within(s.sh_offset, s.sh_size), path, found);
  }
}

bool is_elf(std::string_view bytes) {
  return bytes.starts_with(std::string_view(ELFMAG, SELFMAG));
}

void read(std::string_view bytes, const std::string& path, Found& found) {
  const Bytes file(bytes, path);
  is_elf(bytes) ? read_elf(file, path, found) : read_fat_binaries(file, path, found);
}

}  // namespace

bool is_container(std::string_view bytes) {
  uint32_t magic = 0;
  if (bytes.size() >= 4) std::memcpy(&magic, bytes.data(), 4);
  return magic == kMagic || is_elf(bytes);
}

std::vector<std::string> embedded_machine_code(std::string_view bytes, const std::string& path) {
  std::vector<std::string> binaries;
  Found found;
  found.binaries = &binaries;
  read(bytes, path, found);
  return binaries;
}

std::vector<EmbeddedText> embedded_texts(std::string_view bytes, const std::string& path) {
  Found found;
  read(bytes, path, found);
  if (found.texts.empty())
    throw BadInput(found.machine_code.empty()
                       ? path + ": holds no device code"
                       : fmt::format("{}: holds machine code alone ({}), no PTX; compile it with -gencode "
                                     "arch=compute_90,code=compute_90 or the like",
                                     path, found.machine_code));
  std::map<std::string, int> times;
  for (EmbeddedText& text : found.texts)
    if (const int before = times[text.path]++; before > 0) text.path += fmt::format(".{}", before + 1);
  return std::move(found.texts);
}

}  // namespace assay::ptx
