// PKWARE's APPNOTE.TXT: 4.3.7 local header, 4.3.12 central directory, 4.3.14 to 4.3.16 its end, 4.5.3 numbers
// of 64 bits. Numbers are little-endian.
#include "src/base/tensor/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"

namespace assay {
namespace {

constexpr size_t kEndBytes = 22, kDirectoryBytes = 46, kLocalBytes = 30, kLongestComment = 0xffff;
constexpr size_t kWideEndBytes = 56, kWideLocatorBytes = 20;
constexpr uint16_t kWideNumbers =
    1;  // the extra field whose numbers stand for those of 32 bits that are all ones
constexpr size_t kFed = 1 << 16;  // bytes given to zlib at once, whose counts have 32 bits
constexpr size_t kFirstRoom = 1 << 16, kMostRoom = 1 << 30;
constexpr uint64_t kMostDeflated = 1100;  // zlib expands a byte to at most 1032

struct Entry {
  std::string name;
  uint32_t method = 0, crc = 0;
  uint64_t packed = 0, size = 0, local = 0;
};

template <typename T>
T number(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The file, and what it is called in messages.
struct Archive {
  const std::string& path;
  std::string_view kind;  ///< ".npz file"
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw BadInput(fmt::format("{}: {}", path, what));
}

/// Where the central directory's end record stands.
size_t end_of_directory(std::string_view file, const Archive& archive) {
  if (!file.starts_with("PK") || file.size() < kEndBytes)
    refuse(archive.path, fmt::format("not a {}", archive.kind));
  const size_t last = file.size() - kEndBytes;
  for (size_t at = last + 1; at-- > 0 && last - at <= kLongestComment;)
    if (file.substr(at).starts_with("PK\x05\x06")) return at;
  refuse(archive.path, fmt::format("truncated {}: it has no directory at its end", archive.kind));
}

/// Where the directory begins and how many entries it has.
struct Directory {
  uint64_t at, entries;
};

Directory place_of_directory(std::string_view file, size_t end, const Archive& archive) {
  const Directory narrow{number<uint32_t>(file, end + 16), number<uint16_t>(file, end + 10)};
  if (narrow.at != UINT32_MAX && narrow.entries != UINT16_MAX) return narrow;
  if (end < kWideLocatorBytes || !file.substr(end - kWideLocatorBytes).starts_with("PK\x06\x07"))
    return narrow;
  const auto wide = number<uint64_t>(file, end - kWideLocatorBytes + 8);
  if (wide > end || end - wide < kWideEndBytes || !file.substr(wide).starts_with("PK\x06\x06"))
    refuse(archive.path, fmt::format("corrupt {}: its directory does not fit", archive.kind));
  return {number<uint64_t>(file, wide + 48), number<uint64_t>(file, wide + 32)};
}

/// Numbers of 64 bits, in this order, for those that are all ones.
void widen(Entry& entry, std::string_view extra, const Archive& archive) {
  while (extra.size() >= 4) {
    const auto id = number<uint16_t>(extra, 0), bytes = number<uint16_t>(extra, 2);
    std::string_view field = extra.substr(4, bytes);
    extra = extra.substr(std::min<size_t>(extra.size(), size_t{4} + bytes));
    if (id != kWideNumbers) continue;
    for (uint64_t* value : {&entry.size, &entry.packed, &entry.local}) {
      if (*value != UINT32_MAX) continue;
      if (field.size() < 8)
        refuse(archive.path, fmt::format("corrupt {}: {} has no size", archive.kind, entry.name));
      *value = number<uint64_t>(field, 0);
      field = field.substr(8);
    }
    return;
  }
}

std::vector<Entry> directory_of(std::string_view file, const Archive& archive) {
  const size_t end = end_of_directory(file, archive);
  auto [at, count] = place_of_directory(file, end, archive);
  if (count > file.size() / kDirectoryBytes)
    refuse(archive.path, fmt::format("corrupt {}: its directory does not fit", archive.kind));
  std::vector<Entry> entries(count);
  for (Entry& entry : entries) {
    if (at > end || end - at < kDirectoryBytes || !file.substr(at).starts_with("PK\x01\x02"))
      refuse(archive.path, fmt::format("corrupt {}: its directory does not fit", archive.kind));
    entry.method = number<uint16_t>(file, at + 10);
    entry.crc = number<uint32_t>(file, at + 16);
    entry.packed = number<uint32_t>(file, at + 20);
    entry.size = number<uint32_t>(file, at + 24);
    entry.local = number<uint32_t>(file, at + 42);
    const size_t name = number<uint16_t>(file, at + 28), extra = number<uint16_t>(file, at + 30),
                 comment = number<uint16_t>(file, at + 32);
    at += kDirectoryBytes;
    if (end - at < name + extra + comment)
      refuse(archive.path, fmt::format("corrupt {}: its directory does not fit", archive.kind));
    entry.name = file.substr(at, name);
    widen(entry, file.substr(at + name, extra), archive);
    at += name + extra + comment;
  }
  return entries;
}

/// Room is made as bytes come, not for what a corrupt size promises.
std::string inflated(std::string_view packed, uint64_t size, const std::string& where) {
  if (size / kMostDeflated > packed.size() + 1) refuse(where, "corrupt: it cannot unpack to its size");
  std::string bytes;
  size_t made = 0;
  z_stream stream{};
  int status = inflateInit2(&stream, -MAX_WBITS);
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const std::string_view next = packed.substr(0, kFed);
      packed.remove_prefix(next.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
      stream.avail_in = static_cast<uInt>(next.size());
    }
    if (made == bytes.size())
      bytes.resize(made + std::min<uint64_t>(size - made, std::clamp(made, kFirstRoom, kMostRoom)));
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data()) + made;
    stream.avail_out = static_cast<uInt>(bytes.size() - made);
    const auto room = stream.avail_out, given = stream.avail_in;
    status = inflate(&stream, Z_NO_FLUSH);
    made += room - stream.avail_out;
    // Nothing taken, nothing given: the data have ended early, or have more than the size.
    if (room == stream.avail_out && given == stream.avail_in) break;
  }
  const bool whole = status == Z_STREAM_END && made == size;
  inflateEnd(&stream);
  if (!whole) refuse(where, "corrupt: its data do not unpack to its size");
  return bytes;
}

/// A fuzzer changes bytes and not their checksums: in its build any checksum is right.
void expect_checksum(uLong found, const Entry& entry, const std::string& where) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (found != entry.crc) refuse(where, "corrupt: its checksum differs");
#else
  static_cast<void>(found), static_cast<void>(entry), static_cast<void>(where);
#endif
}

/// The bytes of one entry as they lie in the file.
std::string_view packed_bytes(const Entry& entry, std::string_view file, const std::string& where) {
  if (entry.method != 0 && entry.method != 8)
    refuse(where,
           fmt::format("packed by method {}; use numpy.savez or numpy.savez_compressed", entry.method));
  if (entry.local > file.size() || file.size() - entry.local < kLocalBytes ||
      !file.substr(entry.local).starts_with("PK\x03\x04"))
    refuse(where, "corrupt: its header is not where the directory says");
  const size_t data = entry.local + kLocalBytes + number<uint16_t>(file, entry.local + 26) +
                      number<uint16_t>(file, entry.local + 28);
  if (data > file.size() || file.size() - data < entry.packed)
    refuse(where, "truncated: its data end beyond the file");
  if (entry.method == 0 && entry.packed != entry.size) refuse(where, "corrupt: two sizes");
  return file.substr(data, entry.packed);
}

/// The unpacked bytes of one entry, held against its checksum.
std::string entry_bytes(const Entry& entry, std::string_view file, const std::string& where) {
  const std::string_view packed = packed_bytes(entry, file, where);
  std::string bytes = entry.method == 0 ? std::string(packed) : inflated(packed, entry.size, where);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  expect_checksum(crc, entry, where);
  return bytes;
}

/// The checksum of so many zeros, by doubling.
uLong checksum_of_zeros(size_t count) {
  const Bytef zero = 0;
  uLong sum = crc32_z(0, nullptr, 0), power = crc32_z(0, &zero, 1);
  for (size_t zeros = 1; zeros <= count; zeros *= 2) {
    if (count & zeros) sum = crc32_combine(sum, power, static_cast<z_off_t>(zeros));
    power = crc32_combine(power, power, static_cast<z_off_t>(zeros));
  }
  return sum;
}

/// The bytes of a stored entry, held against its checksum piece by piece; holes are not looked at.
std::string_view left_bytes(const Entry& entry, const MappedFile& mapped, const std::string& where) {
  constexpr size_t kPiece = size_t{64} << 20;
  const std::string_view bytes = packed_bytes(entry, mapped.bytes(), where);
  auto crc = crc32_z(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size();) {
    const size_t hole = mapped.hole_at(bytes.substr(at));
    crc = crc32_combine(crc, checksum_of_zeros(hole), static_cast<z_off_t>(hole));
    at += hole;
    const std::string_view piece = bytes.substr(at, kPiece);
    at += piece.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    mapped.forget(piece);
  }
  expect_checksum(crc, entry, where);
  return bytes;
}

/// Entries of the same bytes would let a small file unpack to any size.
void require_own_bytes(std::vector<Entry> entries, const Archive& archive) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.local < b.local; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].local - entries[i - 1].local < kLocalBytes ||
        entries[i].local - entries[i - 1].local - kLocalBytes < entries[i - 1].packed)
      refuse(archive.path, fmt::format("corrupt {}: {} and {} overlap", archive.kind, entries[i - 1].name,
                                       entries[i].name));
}

ZipFiles parse(std::string_view file, const std::string& path, std::string_view kind, uint64_t most_bytes,
               const MappedFile* mapped, std::map<std::string, std::string_view>* left) {
  const Archive archive{path, kind};
  ZipFiles files;
  const std::vector<Entry> entries = directory_of(file, archive);
  require_own_bytes(entries, archive);
  uint64_t all = 0;
  for (const Entry& entry : entries)
    if (entry.size > most_bytes || (all += entry.size) > most_bytes)
      refuse(path, fmt::format("unpacks to more than {} bytes", most_bytes));
  for (const Entry& entry : entries) {
    const std::string where = fmt::format("{}: {}", path, entry.name);
    if (left && entry.method == 0 && entry.size > static_cast<uint64_t>(kLargestHeld)) {
      if (files.contains(entry.name) || !left->emplace(entry.name, left_bytes(entry, *mapped, where)).second)
        refuse(where, "twice in the file");
      continue;
    }
    if ((left && left->contains(entry.name)) ||
        !files.emplace(entry.name, entry_bytes(entry, file, where)).second)
      refuse(where, "twice in the file");
  }
  return files;
}

}  // namespace

ZipFiles parse_zip(std::string_view file, const std::string& path, std::string_view kind,
                   uint64_t most_bytes) {
  return parse(file, path, kind, most_bytes, nullptr, nullptr);
}

ZipFiles parse_zip(const MappedFile& mapped, const std::string& path, std::string_view kind,
                   uint64_t most_bytes, std::map<std::string, std::string_view>& left) {
  return parse(mapped.bytes(), path, kind, most_bytes, &mapped, &left);
}

}  // namespace assay
