#include "kernels/module_text.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "kernels/embedded.h"
#include "kernels/packed_group.h"

namespace assay {
namespace {

std::string text_of(const EmbeddedFile& file) {
  std::optional<std::string> text =
      text_of_group({file.begin, static_cast<size_t>(file.end - file.begin)}, file.name);
  if (!text) throw std::logic_error(fmt::format("embedded module {} is broken", file.name));
  return *std::move(text);
}

/// By module name; null where there is none.
const EmbeddedFile* module_named(const std::string& name) {
  static const auto files = [] {
    std::unordered_map<std::string_view, const EmbeddedFile*> result;
    for (const EmbeddedFile* file = embedded_ptx; file->name; ++file) result.emplace(file->name, file);
    return result;
  }();
  const auto found = files.find(name);
  return found == files.end() ? nullptr : found->second;
}

/// The text by module name, inflated or compiled when first asked for.
std::shared_ptr<const std::string> text_of(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const std::string>> texts;
  const EmbeddedFile* const file = module_named(name);
  if (!file) throw std::logic_error("no module " + name);
  {
    const std::scoped_lock lock(mutex);
    std::shared_ptr<const std::string>& text = texts[name];
    if (!text && file->begin) text = std::make_shared<const std::string>(text_of(*file));
    if (text) return text;
  }
  const auto text = compile_module(kernel_sources(), name);  // unlocked: others compile beside it
  const std::scoped_lock lock(mutex);
  return texts[name] = text;
}

}  // namespace

Module kernel_module(const std::string& name) {
  return {name, name + ".ptx", text_of(name)};
}

Module gla_module(std::string_view mode, Dtype element, Dtype gate) {
  return kernel_module(fmt::format("gla/{}.{}.{}", mode, format(element).name, format(gate).name));
}

std::vector<Module> kernel_modules() {
  std::vector<Module> result;
  for (const EmbeddedFile* file = embedded_ptx; file->name; ++file)
    result.push_back(kernel_module(file->name));
  return result;
}

const SourceTree& kernel_sources() {
  static const SourceTree tree = [] {
    SourceTree result;
    for (const SourceFile& file : embedded_sources())
      if (!file.path.ends_with(".patch")) result.emplace_back(file.path, file.text);
    return result;
  }();
  return tree;
}

Program compiled_plainly(Program program, const SourceTree& sources) {
  for (Module& module : program.modules) module.ptx = compile_module(sources, module.name, Compiled::plainly);
  return program;
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
