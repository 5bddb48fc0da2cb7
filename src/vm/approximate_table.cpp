#include "src/vm/approximate_table.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>

// The recorded files become part of the program; the build adds src/vm/tables/ to the assembler's include
// path.
#define EMBED(name, file)                                                                           \
  __asm__(".section .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name "_end:\n.previous\n"); \
  extern "C" const unsigned char name##_begin[] __attribute__((visibility("hidden")));              \
  extern "C" const unsigned char name##_end[] __attribute__((visibility("hidden")))

EMBED(assay_table_ex2, "ex2_1_2.2bit.z");
EMBED(assay_table_rcp, "rcp_1_2.2bit.z");
EMBED(assay_table_rsqrt, "rsqrt_1_4.2bit.z");
EMBED(assay_table_lg2, "lg2_2_4.2bit.z");

namespace assay::vm {

const uint8_t* DifferenceTable::unpacked() {
  std::call_once(once_, [this] {
    packed_.resize(count_ / 4);
    uLongf size = packed_.size();
    if (uncompress(packed_.data(), &size, begin_, static_cast<uLong>(end_ - begin_)) != Z_OK ||
        size != packed_.size()) {
      std::fputs("internal error: an embedded table of src/vm/tables does not unpack\n", stderr);
      std::abort();
    }
    ready_.store(packed_.data(), std::memory_order_release);
  });
  return packed_.data();
}

DifferenceTable& ex2_differences() {
  static DifferenceTable table(assay_table_ex2_begin, assay_table_ex2_end, 1u << 23, 1);
  return table;
}
DifferenceTable& rcp_differences() {
  static DifferenceTable table(assay_table_rcp_begin, assay_table_rcp_end, 1u << 23, 1);
  return table;
}
DifferenceTable& rsqrt_differences() {
  static DifferenceTable table(assay_table_rsqrt_begin, assay_table_rsqrt_end, 1u << 24, 2);
  return table;
}
DifferenceTable& lg2_differences() {
  static DifferenceTable table(assay_table_lg2_begin, assay_table_lg2_end, 1u << 23, 1);
  return table;
}

}  // namespace assay::vm
