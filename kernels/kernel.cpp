#include "kernels/kernel.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>

#include "kernels/defect.h"
#include "src/case/names.h"
#include "src/numerics/bad_input.h"

namespace assay {

#define ASSAY_KERNEL(make) Kernel make();
#include "kernels/kernels.def"
#undef ASSAY_KERNEL

std::vector<std::string> directions_of(const Kernel& kernel) {
  std::vector<std::string> directions;
  if (kernel.arithmetic) directions.emplace_back("forward");
  if (kernel.adjoint_arithmetic) directions.emplace_back("backward");
  if (directions.size() == 2) directions.emplace_back("both");
  return directions;
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> table = {
#define ASSAY_KERNEL(make) make(),
#include "kernels/kernels.def"
#undef ASSAY_KERNEL
  };
  return table;
}

namespace {

const Kernel& find_clean(std::string_view name, std::string_view asked) {
  std::vector<std::string> known;
  for (const Kernel& kernel : kernels()) {
    if (kernel.name == name) return kernel;
    known.push_back(kernel.name);
  }
  throw BadInput(unknown_name("kernel", asked, known));
}

}  // namespace

const Kernel& find_kernel(std::string_view name) {
  const size_t at = name.find('@');
  const Kernel& clean = find_clean(name.substr(0, at), name);
  if (at == name.npos) return clean;

  // References stay valid: a deque never moves its elements.
  static std::mutex mutex;
  static std::deque<Kernel> patched;
  const std::scoped_lock lock(mutex);
  for (const Kernel& kernel : patched)
    if (kernel.name == name) return kernel;
  return patched.emplace_back(with_defect(clean, std::string(name.substr(at + 1))));
}

}  // namespace assay
