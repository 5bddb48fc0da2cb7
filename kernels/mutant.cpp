#include "kernels/mutant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

#include "kernels/module_text.h"
#include "kernels/views/gather_plan.h"
#include "src/base/numerics/bad_input.h"

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

Kernel changed(const Kernel& kernel, const std::string& id, const std::function<void(Module&)>& change) {
  Kernel mutant = kernel;
  mutant.name = kernel.name + "%" + id;
  mutant.summary = "with one instruction changed";
  mutant.plainly = nullptr;  // no source has that instruction
  mutant.plan = [plan = kernel.plan, name = mutant.name, change](const ResolvedCase& c,
                                                                 const TensorMap& inputs) {
    Program result = plan(c, inputs);
    result.name = name;
    for (Module& module : result.modules) change(module);
    Module copies = kernel_module(gather_module);  // of views, whose launches come later
    const auto text = copies.ptx;
    change(copies);
    if (copies.ptx != text) result.modules.push_back(copies);
    return result;
  };
  return mutant;
}

std::shared_ptr<const std::string> with_mutation(const Module& module, const std::string& mutation) {
  const ptx::MutableText original(module.ptx, module.path);
  return std::make_shared<const std::string>(original.with(original.named(mutation)));
}

/// Optional inputs that a case may lack: none, each alone, all.
std::vector<std::set<std::string>> absences(const Operator& op) {
  std::vector<std::set<std::string>> sets{{}};
  std::set<std::string> all;
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional && input.role != Role::state) {
      all.insert(std::string(input.name));
      sets.push_back({std::string(input.name)});
    }
  sets.push_back(all);
  return sets;
}

/// Modules that the kernel launches in some small case: of every format, direction and presence of inputs.
std::map<std::string, Module> modules_of(const Kernel& kernel) {
  const Operator& op = find_operator(kernel.operator_name);
  const std::vector<Dtype> none{Dtype::fp32};
  std::map<std::string, Module> modules{{gather_module, kernel_module(gather_module)}};
  Case c;
  c.T = 3, c.decay = "none";
  for (const int64_t channels : {4, 8})  // 8: rows of 16 bytes, as tensor maps want them
    for (const Direction direction : directions_of(kernel))
      for (const Dtype dtype : kernel.limits.dtypes)
        for (const Dtype gate : kernel.limits.gate_dtypes.empty() ? none : kernel.limits.gate_dtypes)
          for (const std::set<std::string>& without : absences(op)) {
            c.K = c.V = c.M = channels;
            c.direction = direction, c.dtype = dtype, c.gate_dtype = gate, c.without = without;
            try {
              const ResolvedCase resolved = resolve_unchecked(c, op);
              for (const Module& module : kernel.plan(resolved, draw_inputs(resolved)).modules)
                modules.emplace(module.name, module);
            } catch (const BadInput&) {
              continue;  // the kernel takes no such case
            }
          }
  return modules;
}

/// Throws BadInput where the kernel has no such module, or that no such mutation.
void require_mutation(const Kernel& kernel, const std::string& id, const std::string& wanted,
                      const std::string& mutation) {
  std::vector<std::string> written;
  for (const auto& [name, module] : modules_of(kernel)) {
    written.push_back(encoded(name));
    if (written.back() != wanted) continue;
    with_mutation(module, mutation);
    return;
  }
  throw BadInput(fmt::format("mutant '{}': {} has no module {}; it has: {}", id, kernel.name, wanted,
                             fmt::join(written, ", ")));
}

}  // namespace

std::string mutant_id(const std::string& module, const std::string& mutation) {
  return encoded(module) + "+" + mutation;
}

Kernel with_mutation(const Kernel& kernel, const std::string& id) {
  const size_t split = split_of(id);
  const std::string module_name = id.substr(0, split), mutation = id.substr(split + 1);
  require_mutation(kernel, id, module_name, mutation);
  return changed(kernel, id, [module_name, mutation, texts = std::make_shared<Texts>()](Module& module) {
    if (encoded(module.name) != module_name) return;
    const std::scoped_lock lock(texts->mutex);
    std::shared_ptr<const std::string>& text = texts->changed[module.ptx];
    if (!text) text = with_mutation(module, mutation);
    module.ptx = text;
  });
}

Program with_mutation(Program program, const std::string& id) {
  const size_t split = split_of(id);
  std::vector<std::string> names;
  for (Module& module : program.modules) {
    names.push_back(encoded(module.name));
    if (names.back() != id.substr(0, split)) continue;
    module.ptx = with_mutation(module, id.substr(split + 1));
    return program;
  }
  throw BadInput(fmt::format("mutant '{}': the program has no module {}; it has: {}", id, id.substr(0, split),
                             fmt::join(names, ", ")));
}

void require_launched(const std::string& kernel, const Program& program) {
  const size_t at = kernel.find('%');
  if (at == kernel.npos) return;
  const std::string id = kernel.substr(at + 1), module = id.substr(0, split_of(id));
  std::set<std::string> launched;
  for (const Launch& launch : program.launches) launched.insert(encoded(launch.module));
  if (!launched.contains(module))
    throw BadInput(
        fmt::format("mutant '{}' changes {}, of which this case launches nothing (it launches {}); "
                    "choose the formats and the direction that do",
                    id, module, fmt::join(launched, ", ")));
}

Kernel with_text(const Kernel& kernel, const std::string& id, const std::string& module_name,
                 std::shared_ptr<const std::string> text) {
  return changed(kernel, id, [module_name, text](Module& module) {
    if (module.name == module_name) module.ptx = text;
  });
}

}  // namespace assay
