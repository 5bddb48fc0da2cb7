#include "fuzz/kept_pairs.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/compile_ptx.h"
#include "src/base/document/whole_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// The linker's note in these bytes, in hexadecimal.
std::string note_of(const char* at, size_t bytes) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  for (size_t left = bytes; left >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) head;
    std::memcpy(&head, at, sizeof head);
    const size_t whole = sizeof head + padded(head.n_namesz) + padded(head.n_descsz);
    if (whole > left) break;
    const char* const name = at + sizeof head;
    if (head.n_type == NT_GNU_BUILD_ID &&
        std::string_view(name, head.n_namesz) == std::string_view("GNU", 4)) {
      std::string text;
      for (size_t i = 0; i < head.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(name[padded(head.n_namesz) + i]));
      return text;
    }
    at += whole, left -= whole;
  }
  return "";
}

struct Sought {
  uintptr_t place;
  std::string found;
};

int look_into(dl_phdr_info* object, size_t, void* data) {
  auto& sought = *static_cast<Sought*>(data);
  const auto end = object->dlpi_phdr + object->dlpi_phnum;
  const bool is_own = std::any_of(object->dlpi_phdr, end, [&](const auto& part) {
    return part.p_type == PT_LOAD && sought.place - object->dlpi_addr - part.p_vaddr < part.p_memsz;
  });
  for (auto part = object->dlpi_phdr; is_own && part != end && sought.found.empty(); ++part)
    if (part->p_type == PT_NOTE)
      sought.found = note_of(reinterpret_cast<const char*>(object->dlpi_addr + part->p_vaddr), part->p_memsz);
  return is_own;
}

/// Of the program or library that this code is in; empty where it was linked without.
const std::string& digest_of_program() {
  static const std::string digest = [] {
    Sought sought{reinterpret_cast<uintptr_t>(&look_into), ""};
    dl_iterate_phdr(&look_into, &sought);
    return sought.found;
  }();
  return digest;
}

/// Empty of a kernel that the program does not determine: a user's plan, a defect.
std::string head_of(const Kernel& kernel) {
  const bool is_own =
      std::any_of(kernels().begin(), kernels().end(), [&](const Kernel& row) { return &row == &kernel; });
  if (!is_own || digest_of_program().empty()) return "";
  return fmt::format("pairs of {} by {}\n", kernel.name, digest_of_program());
}

fs::path path_of(const Kernel& kernel) {
  return cache_folder() / fmt::format("{}.pairs", kernel.name);
}

}  // namespace

bool read_kept_pairs(const Kernel& kernel, std::vector<uint8_t>& possible) {
  const std::string head = head_of(kernel);
  if (head.empty()) return false;
  std::ifstream in(path_of(kernel), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!text.starts_with(head) || text.size() != head.size() + possible.size() ||
      text.find_first_not_of("01", head.size()) != text.npos)
    return false;
  std::transform(text.begin() + static_cast<ptrdiff_t>(head.size()), text.end(), possible.begin(),
                 [](char c) { return static_cast<uint8_t>(c == '1'); });
  return true;
}

void keep_pairs(const Kernel& kernel, const std::vector<uint8_t>& possible) {
  std::string text = head_of(kernel);
  if (text.empty()) return;
  for (const uint8_t of : possible) text += of ? '1' : '0';
  write_whole(path_of(kernel), text);
}

}  // namespace assay
