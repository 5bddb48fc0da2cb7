#include "kernels/module_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include "kernels/embedded.h"

namespace assay {
namespace {

/// Undoes what prepare_ptx_main.cpp did.
std::string inflated(const EmbeddedFile& file) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.begin);
  uint64_t size = 0;
  for (int i = 0; i < 8; ++i) size |= uint64_t{bytes[i]} << (8 * i);
  std::string text(size, '\0');
  uLongf length = size;
  if (uncompress(reinterpret_cast<Bytef*>(text.data()), &length, bytes + 8, file.end - file.begin - 8) !=
          Z_OK ||
      length != size)
    throw std::logic_error(std::string("embedded module is broken: ") + file.name);
  return text;
}

/// The text by module name, inflated when first asked for.
std::shared_ptr<const std::string> text_of(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const std::string>> texts;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<const std::string>& text = texts[name];
  for (const EmbeddedFile* file = embedded_ptx; !text && file->name; ++file)
    if (file->name == name) text = std::make_shared<const std::string>(inflated(*file));
  if (!text) throw std::logic_error("no embedded module " + name);
  return text;
}

}  // namespace

Module embedded_module(const std::string& name) {
  return {name, name + ".ptx", text_of(name)};
}

Module gla_module(std::string_view mode, Dtype element, Dtype gate) {
  return embedded_module(fmt::format("gla/{}.{}.{}", mode, format(element).name, format(gate).name));
}

std::vector<Module> embedded_modules() {
  std::vector<Module> result;
  for (const EmbeddedFile* file = embedded_ptx; file->name; ++file)
    result.push_back(embedded_module(file->name));
  return result;
}

const std::vector<SourceFile>& embedded_sources() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> result;
    for (const EmbeddedFile* file = embedded_source; file->name; ++file)
      result.push_back({file->name, {file->begin, static_cast<size_t>(file->end - file->begin)}});
    return result;
  }();
  return files;
}

}  // namespace assay
