// PKWARE's APPNOTE.TXT: 4.3.7 local header, 4.3.12 central directory, 4.3.14 to 4.3.16 its end, 4.5.3 numbers
// of 64 bits. Numbers are little-endian.
#include "src/base/tensor/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/npy.h"
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

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw BadInput(fmt::format("{}: {}", path, what));
}

/// Where the central directory's end record stands.
size_t end_of_directory(std::string_view file, const std::string& path) {
  if (!file.starts_with("PK") || file.size() < kEndBytes) refuse(path, "not a .npz file");
  const size_t last = file.size() - kEndBytes;
  for (size_t at = last + 1; at-- > 0 && last - at <= kLongestComment;)
    if (file.substr(at).starts_with("PK\x05\x06")) return at;
  refuse(path, "truncated .npz file: it has no directory at its end");
}

/// Where the directory begins and how many entries it has.
struct Directory {
  uint64_t at, entries;
};

Directory place_of_directory(std::string_view file, size_t end, const std::string& path) {
  const Directory narrow{number<uint32_t>(file, end + 16), number<uint16_t>(file, end + 10)};
  if (narrow.at != UINT32_MAX && narrow.entries != UINT16_MAX) return narrow;
  if (end < kWideLocatorBytes || !file.substr(end - kWideLocatorBytes).starts_with("PK\x06\x07"))
    return narrow;
  const auto wide = number<uint64_t>(file, end - kWideLocatorBytes + 8);
  if (wide > end || end - wide < kWideEndBytes || !file.substr(wide).starts_with("PK\x06\x06"))
    refuse(path, "corrupt .npz file: its directory does not fit");
  return {number<uint64_t>(file, wide + 48), number<uint64_t>(file, wide + 32)};
}

/// Numbers of 64 bits, in this order, for those that are all ones.
void widen(Entry& entry, std::string_view extra, const std::string& path) {
  while (extra.size() >= 4) {
    const auto id = number<uint16_t>(extra, 0), bytes = number<uint16_t>(extra, 2);
    std::string_view field = extra.substr(4, bytes);
    extra = extra.substr(std::min<size_t>(extra.size(), size_t{4} + bytes));
    if (id != kWideNumbers) continue;
    for (uint64_t* value : {&entry.size, &entry.packed, &entry.local}) {
      if (*value != UINT32_MAX) continue;
      if (field.size() < 8) refuse(path, fmt::format("corrupt .npz file: {} has no size", entry.name));
      *value = number<uint64_t>(field, 0);
      field = field.substr(8);
    }
    return;
  }
}

std::vector<Entry> directory_of(std::string_view file, const std::string& path) {
  const size_t end = end_of_directory(file, path);
  auto [at, count] = place_of_directory(file, end, path);
  if (count > file.size() / kDirectoryBytes) refuse(path, "corrupt .npz file: its directory does not fit");
  std::vector<Entry> entries(count);
  for (Entry& entry : entries) {
    if (at > end || end - at < kDirectoryBytes || !file.substr(at).starts_with("PK\x01\x02"))
      refuse(path, "corrupt .npz file: its directory does not fit");
    entry.method = number<uint16_t>(file, at + 10);
    entry.crc = number<uint32_t>(file, at + 16);
    entry.packed = number<uint32_t>(file, at + 20);
    entry.size = number<uint32_t>(file, at + 24);
    entry.local = number<uint32_t>(file, at + 42);
    const size_t name = number<uint16_t>(file, at + 28), extra = number<uint16_t>(file, at + 30),
                 comment = number<uint16_t>(file, at + 32);
    at += kDirectoryBytes;
    if (end - at < name + extra + comment) refuse(path, "corrupt .npz file: its directory does not fit");
    entry.name = file.substr(at, name);
    widen(entry, file.substr(at + name, extra), path);
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

/// The unpacked bytes of one entry, held against its checksum.
std::string entry_bytes(const Entry& entry, std::string_view file, const std::string& where) {
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
  const std::string_view packed = file.substr(data, entry.packed);
  if (entry.method == 0 && entry.packed != entry.size) refuse(where, "corrupt: two sizes");
  std::string bytes = entry.method == 0 ? std::string(packed) : inflated(packed, entry.size, where);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc) refuse(where, "corrupt: its checksum differs");
  return bytes;
}

/// Entries of the same bytes would let a small file unpack to any size.
void require_own_bytes(std::vector<Entry> entries, const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.local < b.local; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].local - entries[i - 1].local < kLocalBytes ||
        entries[i].local - entries[i - 1].local - kLocalBytes < entries[i - 1].packed)
      refuse(path, fmt::format("corrupt .npz file: {} and {} overlap", entries[i - 1].name, entries[i].name));
}

}  // namespace

TensorMap parse_npz(std::string_view file, const std::string& path) {
  TensorMap tensors;
  const std::vector<Entry> entries = directory_of(file, path);
  require_own_bytes(entries, path);
  for (const Entry& entry : entries) {
    const std::string where = fmt::format("{}: {}", path, entry.name);
    if (!entry.name.ends_with(".npy")) refuse(where, "not a .npy file");
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    Tensor tensor = parse_npy(entry_bytes(entry, file, where), where);
    tensor.name = name;
    if (!tensors.emplace(name, std::move(tensor)).second) refuse(where, "twice in the file");
  }
  if (tensors.empty()) refuse(path, "a .npz file without tensors");
  return tensors;
}

TensorMap read_npz(const std::string& path) {
  return parse_npz(read_file(path), path);
}

}  // namespace assay
