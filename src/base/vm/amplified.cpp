#include "src/base/vm/amplified.h"

#include <tuple>

namespace assay::vm {

double Binades::quantile(double share) const {
  uint64_t all = 0, below = 0;
  for (const uint32_t count : counts) all += count;
  for (size_t i = 0; i < counts.size(); ++i)
    if (static_cast<double>(below += counts[i]) > share * static_cast<double>(all))
      return std::ldexp(1, static_cast<int>(i) - 32);
  return 0;
}

void Amplified::merge(const Amplified& other) {
  errors.merge(other.errors), growths.merge(other.growths), returns.merge(other.returns);
  // Of equal errors the one that every order of threads finds.
  const auto rank = [](const Amplified& a) { return std::tuple(a.error, ~a.block, ~a.thread); };
  if (rank(other) <= rank(*this)) return;
  error = other.error, value = other.value, exact = other.exact, block = other.block, thread = other.thread;
}

}  // namespace assay::vm
