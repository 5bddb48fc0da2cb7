#include "kernels/module_text.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "kernels/embedded.h"

namespace assay {
namespace {

using Texts = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;

const Texts& texts() {
  static const Texts table = [] {
    Texts result;
    for (const EmbeddedFile* file = embedded_ptx; file->name; ++file)
      result.emplace(file->name, std::make_shared<const std::string>(file->begin, file->end));
    return result;
  }();
  return table;
}

Module module_of(const std::string& name, const std::shared_ptr<const std::string>& text) {
  return {name, name + ".ptx", text};
}

}  // namespace

Module gla_module(std::string_view mode, Dtype element, Dtype gate) {
  const std::string name = fmt::format("gla/{}.{}.{}", mode, format(element).name, format(gate).name);
  const auto found = texts().find(name);
  if (found == texts().end()) throw std::logic_error("no embedded module " + name);
  return module_of(name, found->second);
}

std::vector<Module> embedded_modules() {
  std::vector<Module> result;
  for (const auto& [name, text] : texts()) result.push_back(module_of(name, text));
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
