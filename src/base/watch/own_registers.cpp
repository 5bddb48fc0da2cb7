// An ELF file whose section `.nv.info` is a list of a form (8 bits), a kind (8), and a value (16 bits; of
// form 4 the size of what follows). Kind 0x2f: the number of a symbol and its registers, of 32 bits each.
#include "src/base/watch/own_registers.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace assay::watch {
namespace {

constexpr uint8_t kSized = 4, kRegisterCount = 0x2f;

/// Nothing in the file is believed: what lies beyond its end is not there.
class File {
 public:
  explicit File(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  std::optional<T> at(uint64_t offset) const {
    const std::string_view part = this->part(offset, sizeof(T));
    if (part.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  std::string_view part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
    return bytes_.substr(offset, size);
  }
  std::string name(const Elf64_Shdr& names, uint64_t offset) const {
    const std::string_view all = part(names.sh_offset, names.sh_size);
    if (offset >= all.size()) return "";
    const std::string_view rest = all.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

 private:
  std::string_view bytes_;
};

}  // namespace

std::map<std::string, int> registers_of(std::string_view cubin) {
  const File file(cubin);
  const auto head = file.at<Elf64_Ehdr>(0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  const auto section = [&](uint64_t index) {
    return index < head->e_shnum ? file.at<Elf64_Shdr>(head->e_shoff + index * head->e_shentsize)
                                 : std::nullopt;
  };
  std::optional<Elf64_Shdr> info, symbols;
  const auto names = section(head->e_shstrndx);
  for (uint64_t i = 0; names && i < head->e_shnum; ++i) {
    const auto s = section(i);
    if (s && s->sh_type == SHT_SYMTAB) symbols = s;
    if (s && file.name(*names, s->sh_name) == ".nv.info") info = s;
  }
  const auto strings = symbols ? section(symbols->sh_link) : std::nullopt;
  std::map<std::string, int> found;
  if (!info || !strings) return found;
  const File list(file.part(info->sh_offset, info->sh_size));
  for (uint64_t at = 0; at + 4 <= info->sh_size;) {
    const auto form = list.at<uint8_t>(at), kind = list.at<uint8_t>(at + 1);
    const auto size = list.at<uint16_t>(at + 2);
    if (!form || !kind || !size) break;
    const auto symbol = list.at<uint32_t>(at + 4), registers = list.at<uint32_t>(at + 8);
    if (*form == kSized && *kind == kRegisterCount && *size == 8 && symbol && registers) {
      const auto entry = file.at<Elf64_Sym>(symbols->sh_offset + *symbol * sizeof(Elf64_Sym));
      if (entry) found[file.name(*strings, entry->st_name)] = static_cast<int>(*registers);
    }
    at += 4 + (*form == kSized ? *size : 0u);
  }
  return found;
}

}  // namespace assay::watch
