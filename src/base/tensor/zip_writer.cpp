// PKWARE's APPNOTE.TXT: 4.3.7 local header, 4.3.12 central directory, 4.3.14 to 4.3.16 its end, 4.5.3 numbers
// of 64 bits. Numbers are little-endian.
#include "src/base/tensor/zip_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr uint64_t kCrcAt = 14;              // in a local header
constexpr uint16_t kPlain = 20, kWide = 45;  // versions: stored files, numbers of 64 bits

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// All ones where the number has 64 bits and stands elsewhere.
template <typename T>
void append_narrow(std::string& bytes, uint64_t value) {
  append(bytes, static_cast<T>(std::min<uint64_t>(value, std::numeric_limits<T>::max())));
}

bool is_wide(uint64_t value) {
  return value >= UINT32_MAX;
}

/// The extra field with numbers that do not fit 32 bits; empty where there are none.
std::string wide_field(const std::string& numbers) {
  std::string field;
  if (numbers.empty()) return field;
  append<uint16_t>(field, 1);
  append(field, static_cast<uint16_t>(numbers.size()));
  return field + numbers;
}

struct Written {
  std::string name;
  uint64_t size = 0, local = 0;
  uint32_t crc = 0;

  /// What the local header and the directory have in common, from the version on.
  std::string numbers(size_t extra, uint16_t version) const {
    std::string bytes;
    append(bytes, version);
    append<uint16_t>(bytes, 1 << 11);  // names in UTF-8
    append<uint16_t>(bytes, 0);
    append<uint32_t>(bytes, 0x00210000);  // 1980-01-01, so that the same contents are the same bytes
    append(bytes, crc);
    append_narrow<uint32_t>(bytes, size);
    append_narrow<uint32_t>(bytes, size);
    append(bytes, static_cast<uint16_t>(name.size()));
    append(bytes, static_cast<uint16_t>(extra));
    return bytes;
  }
  std::string sizes() const {
    std::string numbers;
    if (is_wide(size)) append(numbers, size), append(numbers, size);
    return numbers;
  }
  std::string local_header() const {
    const std::string extra = wide_field(sizes());
    return "PK\x03\x04" + numbers(extra.size(), extra.empty() ? kPlain : kWide) + name + extra;
  }
  std::string directory_entry() const {
    std::string place = sizes();
    if (is_wide(local)) append(place, local);
    const std::string extra = wide_field(place);
    const uint16_t version = extra.empty() ? kPlain : kWide;
    std::string bytes = "PK\x01\x02";
    append(bytes, version);
    bytes += numbers(extra.size(), version);
    append<uint16_t>(bytes, 0);  // comment
    append<uint16_t>(bytes, 0);  // disk
    append<uint16_t>(bytes, 0);
    append<uint32_t>(bytes, 0);  // attributes
    append_narrow<uint32_t>(bytes, local);
    return bytes + name + extra;
  }
};

class Writer {
 public:
  explicit Writer(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) fail();
  }

  void add(const std::string& name, const ZipPart& part) {
    Written& made = entries_.emplace_back();
    made.name = name, made.size = part.bytes, made.local = at_;
    put(made.local_header());
    const uint64_t begin = at_;
    auto crc = crc32_z(0, nullptr, 0);
    part.each_piece([&](std::string_view piece) {
      for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kPiece)))
        crc = put_data(piece.substr(0, kPiece), crc);
    });
    if (at_ - begin != part.bytes) refuse(fmt::format("{} has changed while it was read", name));
    made.crc = static_cast<uint32_t>(crc);
    if (!file_.seekp(static_cast<std::streamoff>(made.local + kCrcAt)))
      refuse("cannot be written: no file that can be written to twice; name a file");
    file_.write(reinterpret_cast<const char*>(&made.crc), sizeof made.crc);
    if (!file_.seekp(static_cast<std::streamoff>(at_))) fail();
  }

  void end() {
    const uint64_t directory = at_;
    for (const Written& entry : entries_) put(entry.directory_entry());
    const uint64_t bytes = at_ - directory, count = entries_.size();
    if (is_wide(directory) || is_wide(bytes) || count >= UINT16_MAX) put(wide_end(directory, bytes, count));
    std::string last = "PK\x05\x06";
    append<uint32_t>(last, 0);
    append_narrow<uint16_t>(last, count);
    append_narrow<uint16_t>(last, count);
    append_narrow<uint32_t>(last, bytes);
    append_narrow<uint32_t>(last, directory);
    append<uint16_t>(last, 0);
    put(last);
    file_.close();
    if (!file_) fail();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw BadInput(fmt::format("{}: {}", path_, what));
  }
  [[noreturn]] void fail() const { refuse(fmt::format("cannot be written: {}", std::strerror(errno))); }

  /// Zeros are left out, so that a file with holes stays one. Returns the checksum with these bytes.
  uLong put_data(std::string_view piece, uLong crc) {
    if (piece.size() < kPiece || piece.find_first_not_of('\0') != piece.npos) {
      put(piece);
      return crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    }
    static const uLong zeros = crc32_z(0, reinterpret_cast<const Bytef*>(piece.data()), kPiece);
    at_ += kPiece;
    if (!file_.seekp(static_cast<std::streamoff>(at_))) fail();
    return crc32_combine(crc, zeros, kPiece);
  }

  void put(std::string_view bytes) {
    if (!file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) fail();
    at_ += bytes.size();
  }

  /// The end record with numbers of 64 bits, and where it stands.
  std::string wide_end(uint64_t directory, uint64_t bytes, uint64_t count) const {
    std::string record = "PK\x06\x06";
    append<uint64_t>(record, 44);  // bytes that follow
    append(record, kWide);
    append(record, kWide);
    append<uint64_t>(record, 0);  // disks
    append(record, count);
    append(record, count);
    append(record, bytes);
    append(record, directory);
    record += "PK\x06\x07";
    append<uint32_t>(record, 0);
    append(record, at_);
    append<uint32_t>(record, 1);
    return record;
  }

  const std::string& path_;
  std::ofstream file_;
  std::vector<Written> entries_;
  uint64_t at_ = 0;
};

}  // namespace

ZipPart zip_part(std::string bytes) {
  const auto held = std::make_shared<const std::string>(std::move(bytes));
  return {held->size(), [held](const ZipPart::Take& take) { take(*held); }};
}

ZipPart zip_part(std::shared_ptr<const MappedFile> file) {
  const uint64_t bytes = file->bytes().size();
  return {bytes, [file = std::move(file)](const ZipPart::Take& take) {
            for (size_t at = 0; at < file->bytes().size(); at += kPiece) {
              const std::string_view piece = file->bytes().substr(at, kPiece);
              take(piece);
              file->forget(piece);
            }
          }};
}

void write_zip(const std::string& path, const ZipParts& parts) {
  for (const auto& [name, part] : parts)
    if (name.size() > UINT16_MAX)
      throw BadInput(fmt::format("{}: a file's name of {} bytes does not go into it", path, name.size()));
  Writer writer(path);
  for (const auto& [name, part] : parts) writer.add(name, part);
  writer.end();
}

void write_zip(const std::string& path, const ZipFiles& files) {
  ZipParts parts;
  for (const auto& [name, bytes] : files) parts.emplace(name, zip_part(bytes));
  write_zip(path, parts);
}

}  // namespace assay
