// Files put into the program by cmake/kernel_modules.cmake. Tables end with an empty row.
#pragma once

namespace assay {

struct EmbeddedFile {
  const char* name;
  const char *begin, *end;
};
/// "gla/chunk.bf16.fp32" -> the group that its PTX is packed in (packed_group.h), or no bytes (null) where
/// modules are compiled on demand.
extern const EmbeddedFile embedded_ptx[];
extern const EmbeddedFile embedded_source[];  ///< "kernels/gla/chunk.cu" -> text

}  // namespace assay
