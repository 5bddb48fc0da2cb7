#include "kernels/packed_text.h"

#include <zlib.h>

#include <cstdint>
#include <stdexcept>

namespace assay {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongest = uint64_t{1} << 31;  // PTX is a megabyte or two; more is a broken length

}  // namespace

std::string packed(std::string_view text) {
  std::string result(compressBound(text.size()) + kLengthBytes, '\0');
  uLongf size = result.size() - kLengthBytes;
  if (compress2(reinterpret_cast<Bytef*>(result.data()) + kLengthBytes, &size,
                reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::logic_error("zlib cannot compress a text");
  result.resize(size + kLengthBytes);
  for (size_t i = 0; i < kLengthBytes; ++i) result[i] = static_cast<char>(uint64_t{text.size()} >> (8 * i));
  return result;
}

std::optional<std::string> unpacked(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  uint64_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) size |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (size > kLongest) return std::nullopt;
  std::string text(size, '\0');
  uLongf length = size;
  if (uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                 reinterpret_cast<const Bytef*>(bytes.data()) + kLengthBytes,
                 bytes.size() - kLengthBytes) != Z_OK ||
      length != size)
    return std::nullopt;
  return text;
}

}  // namespace assay
