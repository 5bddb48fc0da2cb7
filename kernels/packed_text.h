// A text as it is kept in the folder of compiled kernels: its length as 8 bytes, low first, then a zstd frame
// with its checksum. What earlier versions kept, a zlib stream, is read too, at a third of the speed.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace assay {

std::string packed(std::string_view text);
/// Nothing where these are not the bytes of a packed text.
std::optional<std::string> unpacked(std::string_view bytes);

}  // namespace assay
