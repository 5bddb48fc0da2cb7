// ZIP archives, read: .npz files and capsules.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/base/tensor/mapped_file.h"

namespace assay {

/// Contents by the names in the archive.
using ZipFiles = std::map<std::string, std::string>;

/// Of stored or deflated files; sizes and checksums are held against the bytes. `path` and `kind` (".npz
/// file") are for messages. Throws BadInput, one line, where the archive is truncated, contradicts itself,
/// has a name twice or unpacks to more than `most_bytes`.
ZipFiles parse_zip(std::string_view file, const std::string& path, std::string_view kind,
                   uint64_t most_bytes = uint64_t{1} << 40);
/// The same, but stored files of more than kLargestHeld bytes stay in `mapped`: what `left` says of them.
ZipFiles parse_zip(const MappedFile& mapped, const std::string& path, std::string_view kind,
                   uint64_t most_bytes, std::map<std::string, std::string_view>& left);

}  // namespace assay
