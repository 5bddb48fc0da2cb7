#include "kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "kernels/defect.h"
#include "kernels/module_text.h"
#include "kernels/mutant.h"
#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay {

#define ASSAY_KERNEL(make) Kernel make();
#include "kernels/kernels.def"
#undef ASSAY_KERNEL

std::vector<Direction> directions_of(const Kernel& kernel) {
  std::vector<Direction> directions;
  if (kernel.arithmetic) directions.push_back(Direction::forward);
  if (kernel.adjoint_arithmetic) directions.push_back(Direction::backward);
  if (directions.size() == 2) directions.push_back(Direction::both);
  return directions;
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> table = [] {
    std::vector<Kernel> made = {
#define ASSAY_KERNEL(make) make(),
#include "kernels/kernels.def"
#undef ASSAY_KERNEL
    };
    for (Kernel& kernel : made)
      kernel.plainly = [](Program program) { return compiled_plainly(std::move(program), kernel_sources()); };
    return made;
  }();
  return table;
}

namespace {

const Kernel& find_clean(std::string_view name, std::string_view asked) {
  std::vector<std::string> known;
  for (const Kernel& kernel : kernels()) {
    if (kernel.name == name) return kernel;
    known.push_back(kernel.name);
  }
  for (const Operator& op : operators()) {
    if (op.name != name) continue;
    std::string own;
    for (const Kernel& kernel : kernels())
      if (kernel.operator_name == name) own += (own.empty() ? "" : ", ") + kernel.name;
    throw BadInput(
        fmt::format("{} is an operator: name {}", name,
                    own.empty() ? "a kernel of your own by --ptx and --plan" : "one of its kernels: " + own));
  }
  throw BadInput(unknown_name("kernel", asked, known));
}

}  // namespace

double largest_rate(const Kernel& kernel) {
  return removes_from_state(find_operator(kernel.operator_name)) ? kernel.limits.rate_max : kLargestRate;
}

const Kernel& find_kernel(std::string_view name) {
  const size_t percent = name.find('%'), at = name.substr(0, percent).find('@');
  const Kernel& clean = find_clean(name.substr(0, std::min(at, percent)), name);
  if (at == name.npos && percent == name.npos) return clean;

  // References stay valid: a deque never moves its elements.
  static std::mutex mutex;
  static std::deque<Kernel> changed;
  const std::scoped_lock lock(mutex);
  for (const Kernel& kernel : changed)
    if (kernel.name == name) return kernel;
  Kernel made =
      at == name.npos ? clean : with_defect(clean, std::string(name.substr(at + 1, percent - at - 1)));
  if (percent != name.npos) made = with_mutation(made, std::string(name.substr(percent + 1)));
  return changed.emplace_back(std::move(made));
}

}  // namespace assay
