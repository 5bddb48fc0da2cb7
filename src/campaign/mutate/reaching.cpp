#include "src/campaign/mutate/reaching.h"

#include <algorithm>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/value_range.h"

namespace assay {

std::optional<std::vector<int32_t>> reaching_writes(ValueRanges& ranges, int32_t at, int32_t reg) {
  const ptx::Function& f = ranges.function();
  const std::vector<int32_t>&writes = ranges.definitions(reg), &names = ranges.uses(reg);
  const auto is_in = [](const std::vector<int32_t>& ascending, int32_t i) {
    return std::binary_search(ascending.begin(), ascending.end(), i);
  };
  std::vector<bool> seen(f.body.size() + 1);
  std::vector<int32_t> work{at}, found;
  while (!work.empty()) {
    const int32_t here = work.back();
    work.pop_back();
    if (here == 0) return std::nullopt;
    for (const int32_t i : ranges.predecessors()[static_cast<size_t>(here)]) {
      if (seen[static_cast<size_t>(i)]) continue;
      seen[static_cast<size_t>(i)] = true;
      const ptx::Instruction& in = f.body[static_cast<size_t>(i)];
      // What a call gives back is among the registers that it names.
      if (is_in(names, i) && vm::signature_of(in).control == vm::Control::call) return std::nullopt;
      const bool written = is_in(writes, i);
      if (written) found.push_back(i);
      if (!written || in.predicate >= 0) work.push_back(i);
    }
  }
  return found;
}

}  // namespace assay
