// What the rewriter puts into a function: PTX text, and registers of its own.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/ptx/type.h"

namespace assay::watch {

/// PTX text with the number of its instructions.
struct Code {
  std::string text;
  int64_t instructions = 0;
  void line(std::string_view instruction);
  void label(std::string_view name);
};

/// Registers that the rewriter adds to a function, by class. Those of a segment are free again after it.
class AddedRegisters {
 public:
  enum class Class : uint8_t { half, word, wide, predicate };
  static Class class_of(ptx::Type);
  /// ".b32"
  static const char* type_of(Class);

  std::string make(Class);
  void free_all() { used_ = {}; }
  /// ".reg .b32 %assay_r<7>;" and so on.
  std::string declarations() const;

 private:
  std::array<int, 4> used_{}, most_{};
};

}  // namespace assay::watch
