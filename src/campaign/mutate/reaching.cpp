#include "src/campaign/mutate/reaching.h"

#include <algorithm>

#include "src/base/vm/signature.h"
#include "src/campaign/mutate/ways.h"

namespace assay {

using ptx::Instruction;

std::optional<std::vector<int32_t>> reaching_writes(const ptx::Function& f, int32_t at, int32_t reg) {
  const auto before = predecessors_of(f);
  std::vector<bool> seen(f.body.size() + 1);
  std::vector<int32_t> work{at}, found;
  while (!work.empty()) {
    const int32_t here = work.back();
    work.pop_back();
    if (here == 0) return std::nullopt;
    for (const int32_t i : before[static_cast<size_t>(here)]) {
      if (seen[static_cast<size_t>(i)]) continue;
      seen[static_cast<size_t>(i)] = true;
      const Instruction& in = f.body[static_cast<size_t>(i)];
      const vm::TextSignature signature = vm::signature_of(in);
      const std::vector<int32_t>&written = signature.writes, &named = signature.reads;
      // What a call gives back is among the registers that it names.
      if (signature.control == vm::Control::call && std::find(named.begin(), named.end(), reg) != named.end())
        return std::nullopt;
      const bool writes = std::find(written.begin(), written.end(), reg) != written.end();
      if (writes) found.push_back(i);
      if (!writes || in.predicate >= 0) work.push_back(i);
    }
  }
  return found;
}

}  // namespace assay
