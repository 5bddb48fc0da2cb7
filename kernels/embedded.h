// Files put into the program by cmake/embed_ptx.cmake. Tables end with an empty row.
#pragma once

namespace assay {

struct EmbeddedFile {
  const char* name;
  const char *begin, *end;
};
extern const EmbeddedFile embedded_ptx[];     ///< "gla/chunk.bf16.fp32" -> PTX
extern const EmbeddedFile embedded_source[];  ///< "kernels/gla/chunk.cu" -> text

}  // namespace assay
