// PTX texts in what nvcc makes besides: fat binaries, and objects, executables and libraries that hold them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::ptx {

struct EmbeddedText {
  std::string path;  ///< for messages: "k.o:compute_80", a number behind it where the file has several
  std::string text;
};

/// Neither of them is PTX text by itself.
bool is_container(std::string_view bytes);

/// Every PTX text of a container, packed ones unpacked (LZ4 and zstd). Throws BadInput where it is damaged,
/// or holds no PTX. Nothing in it is believed: offsets and sizes are held against the file before they are
/// used.
std::vector<EmbeddedText> embedded_texts(std::string_view bytes, const std::string& path);

/// The machine code of a container beside its texts (ELF files), unpacked. Throws BadInput where it is
/// damaged.
std::vector<std::string> embedded_machine_code(std::string_view bytes, const std::string& path);

}  // namespace assay::ptx
