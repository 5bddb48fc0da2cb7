// Where the registers of a function are written, from the text alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/signature.h"

namespace assay {

class Definitions {
 public:
  explicit Definitions(const ptx::Function& f) {
    for (size_t i = 0; i < f.body.size(); ++i)
      for (const int32_t reg : vm::signature_of(f.body[i]).writes)
        of_[reg].push_back(static_cast<int32_t>(i));
  }
  /// Of the register, ascending.
  std::span<const int32_t> all(int32_t reg) const {
    const auto known = of_.find(reg);
    return known == of_.end() ? std::span<const int32_t>() : known->second;
  }
  /// The last one of the register before an instruction; -1: none.
  int32_t last_before(int32_t reg, int32_t at) const {
    const auto known = of_.find(reg);
    if (known == of_.end()) return -1;
    const auto next = std::lower_bound(known->second.begin(), known->second.end(), at);
    return next == known->second.begin() ? -1 : *std::prev(next);
  }

 private:
  std::unordered_map<int32_t, std::vector<int32_t>> of_;  ///< by register, ascending
};

}  // namespace assay
