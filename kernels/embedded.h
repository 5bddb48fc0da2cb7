// Files put into the program by cmake/embed_ptx.cmake. Tables end with an empty row.
#pragma once

namespace assay {

struct EmbeddedFile {
  const char* name;
  const char *begin, *end;
};
/// "gla/chunk.bf16.fp32" -> packed PTX, or no bytes (null) where modules are compiled on demand.
extern const EmbeddedFile embedded_ptx[];
extern const EmbeddedFile embedded_source[];  ///< "kernels/gla/chunk.cu" -> text

}  // namespace assay
