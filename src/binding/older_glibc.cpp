// What gcc 12's own run-time library takes from glibc 2.35 and 2.36, for machines with an older one: the
// Python package's library links the former statically, and these stand in for the latter.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

#define ASSAY_HERE extern "C" __attribute__((visibility("hidden")))

/// Of std::random_device.
ASSAY_HERE uint32_t arc4random() noexcept {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) std::abort();
  return number;
}

#ifdef DLFO_EH_SEGMENT_TYPE
namespace {

struct Search {
  uintptr_t address;
  dl_find_object* found;
};

/// The object that holds the address: where it lies, and its table of frames.
int look(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  uintptr_t begin = UINTPTR_MAX, end = 0, frames = 0;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + part.p_vaddr, to = from + part.p_memsz;
    if (part.p_type == DLFO_EH_SEGMENT_TYPE) frames = from;
    if (part.p_type != PT_LOAD) continue;
    begin = from < begin ? from : begin, end = to > end ? to : end;
    holds |= search.address >= from && search.address < to;
  }
  if (!holds || frames == 0) return 0;
  *search.found = {};
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
  return 1;
}

}  // namespace

/// Of the unwinder: -1 where no object holds the address.
ASSAY_HERE int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
#endif
