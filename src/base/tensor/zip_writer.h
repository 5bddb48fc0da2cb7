// ZIP archives, written: files of any size pass through in pieces.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/tensor/mapped_file.h"
#include "src/base/tensor/zip.h"

namespace assay {

/// The contents of one file of an archive.
struct ZipPart {
  using Take = std::function<void(std::string_view piece)>;
  uint64_t bytes = 0;
  std::function<void(const Take&)> each_piece;  ///< one after the other, `bytes` in all
};
ZipPart zip_part(std::string bytes);
/// Pieces that have been passed on take no memory any more.
ZipPart zip_part(std::shared_ptr<const MappedFile>);

/// Contents by the names in the archive.
using ZipParts = std::map<std::string, ZipPart>;

/// Stored, in the order of names; the same contents give the same bytes. Above 4 GiB, or 65,534 files, with
/// numbers of 64 bits. Throws BadInput where `path` cannot be written, or is no file but a pipe.
void write_zip(const std::string& path, const ZipParts&);
void write_zip(const std::string& path, const ZipFiles&);

}  // namespace assay
