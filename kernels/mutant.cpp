#include "kernels/mutant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "src/numerics/bad_input.h"

namespace assay {
namespace {

std::string encoded(const std::string& module) {
  std::string result = module;
  for (char& c : result)
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("._@-").find(c) == std::string_view::npos)
      c = '+';
  return result;
}

/// The part of the identity that names the change: LINE+OPERATOR, from the last + but one.
size_t split_of(const std::string& id) {
  const size_t last = id.rfind('+');
  const size_t at = last == id.npos || last == 0 ? id.npos : id.rfind('+', last - 1);
  const bool named = at != id.npos && at > 0 && at + 1 < last && last + 1 < id.size();
  if (!named || !std::all_of(id.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                             id.begin() + static_cast<std::ptrdiff_t>(last),
                             [](unsigned char c) { return std::isdigit(c); }))
    throw BadInput(
        fmt::format("mutant '{}': write it as MODULE+LINE+OPERATOR, as assay mutate prints it", id));
  return at;
}

/// Changed texts by the text that they were made from.
struct Texts {
  std::mutex mutex;
  std::map<std::shared_ptr<const std::string>, std::shared_ptr<const std::string>> changed;
};

Kernel renamed(const Kernel& kernel, const std::string& id) {
  Kernel mutant = kernel;
  mutant.name = kernel.name + "%" + id;
  mutant.summary = "with one instruction changed";
  return mutant;
}

}  // namespace

std::string mutant_id(const std::string& module, const std::string& mutation) {
  return encoded(module) + "+" + mutation;
}

Kernel with_mutation(const Kernel& kernel, const std::string& id) {
  const size_t split = split_of(id);
  Kernel mutant = renamed(kernel, id);
  mutant.plan = [plan = kernel.plan, name = mutant.name, module_name = id.substr(0, split),
                 mutation = id.substr(split + 1), texts = std::make_shared<Texts>()](
                    const Case& c, const Operator& op, const TensorMap& inputs) {
    Plan result = plan(c, op, inputs);
    result.kernel = name;
    for (Module& module : result.modules) {
      if (encoded(module.name) != module_name) continue;
      const std::scoped_lock lock(texts->mutex);
      std::shared_ptr<const std::string>& changed = texts->changed[module.ptx];
      if (!changed) {
        const ptx::MutableText text(module.ptx, module.path);
        changed = std::make_shared<const std::string>(text.with(text.named(mutation)));
      }
      module.ptx = changed;
    }
    return result;
  };
  return mutant;
}

Kernel with_text(const Kernel& kernel, const std::string& id, const std::string& module_name,
                 std::shared_ptr<const std::string> text) {
  Kernel mutant = renamed(kernel, id);
  mutant.plan = [plan = kernel.plan, name = mutant.name, module_name, text](const Case& c, const Operator& op,
                                                                            const TensorMap& inputs) {
    Plan result = plan(c, op, inputs);
    result.kernel = name;
    for (Module& module : result.modules)
      if (module.name == module_name) module.ptx = text;
    return result;
  };
  return mutant;
}

}  // namespace assay
