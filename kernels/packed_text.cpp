#include "kernels/packed_text.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace assay {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongest = uint64_t{1} << 31;  // PTX is a megabyte or two; more is a broken length
constexpr int kLevel = 6;

/// Is the text's length, and fills it.
bool unpack_zstd(std::string_view bytes, std::string& text) {
  return ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size()) == text.size();
}

bool unpack_zlib(std::string_view bytes, std::string& text) {
  uLongf length = text.size();
  return uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                    reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) == Z_OK &&
         length == text.size();
}

bool is_zstd(std::string_view bytes) {
  return bytes.starts_with("\x28\xb5\x2f\xfd");
}

}  // namespace

std::string packed(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string result(ZSTD_compressBound(text.size()) + kLengthBytes, '\0');
  const size_t size = ZSTD_compress2(context.get(), result.data() + kLengthBytes,
                                     result.size() - kLengthBytes, text.data(), text.size());
  if (ZSTD_isError(size)) throw std::logic_error("zstd cannot compress a text");
  result.resize(size + kLengthBytes);
  for (size_t i = 0; i < kLengthBytes; ++i) result[i] = static_cast<char>(uint64_t{text.size()} >> (8 * i));
  return result;
}

std::optional<std::string> unpacked(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  uint64_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) size |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (size > kLongest) return std::nullopt;
  bytes.remove_prefix(kLengthBytes);
  std::string text(size, '\0');
  if (!(is_zstd(bytes) ? unpack_zstd(bytes, text) : unpack_zlib(bytes, text))) return std::nullopt;
  return text;
}

}  // namespace assay
