#include "kernels/packed_group.h"

#include <fmt/format.h>
#include <zstd.h>

#include <charconv>
#include <memory>
#include <stdexcept>

#include "kernels/relative_registers.h"

namespace assay {
namespace {

constexpr unsigned long long kLongest = 1ULL << 31;  // a group is some ten megabytes; more is a broken length
constexpr int kLevel = 19;
constexpr int kWindowLog = 27;  // reaches over a whole group
constexpr char kAsItIs = 'a', kRelative = 'r';

size_t checked(size_t result) {
  if (ZSTD_isError(result)) throw std::logic_error(fmt::format("zstd: {}", ZSTD_getErrorName(result)));
  return result;
}

std::optional<std::string> unpacked_frame(std::string_view bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size > kLongest) return std::nullopt;  // both of zstd's errors are beyond it
  std::string content(size, '\0');
  const size_t got = ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  return ZSTD_isError(got) || got != size ? std::nullopt : std::optional(std::move(content));
}

std::optional<std::string> text_of(std::string_view packed) {
  if (packed.empty()) return std::nullopt;
  if (packed[0] == kRelative) return with_absolute_registers(packed.substr(1));
  return std::string(packed.substr(1));
}

}  // namespace

std::string packed_group(const std::vector<std::pair<std::string, std::string>>& named_texts) {
  std::string content, texts;
  for (const auto& [name, text] : named_texts) {
    const std::optional<std::string> relative = with_relative_registers(text);
    const size_t before = texts.size();
    texts += relative ? kRelative : kAsItIs;
    texts += relative ? *relative : text;
    content += fmt::format("{} {}\n", name, texts.size() - before);
  }
  content += '\n' + texts;
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel));
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, kWindowLog));
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_enableLongDistanceMatching, 1));
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  std::string result(ZSTD_compressBound(content.size()), '\0');
  result.resize(
      checked(ZSTD_compress2(context.get(), result.data(), result.size(), content.data(), content.size())));
  return result;
}

std::optional<std::string> text_of_group(std::string_view bytes, std::string_view name) {
  const std::optional<std::string> content = unpacked_frame(bytes);
  if (!content) return std::nullopt;
  const std::string_view whole = *content;
  const size_t texts = whole.starts_with('\n') ? 1 : whole.find("\n\n") + 2;
  std::string_view lines = whole.substr(0, texts - 1);
  for (size_t begin = texts; !lines.empty();) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    const size_t space = line.find(' ');
    size_t size = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), size);
    if (line.substr(0, space) == name) return text_of(whole.substr(begin, size));
    begin += size;
  }
  return std::nullopt;
}

}  // namespace assay
