// Where a non-finite value was born, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/plan/outcome.h"

namespace assay {

struct OriginOperand {
  std::string name;  ///< register or immediate as written in the PTX
  std::string type;  ///< "f32", "bf16x2", ...
  double value = 0;
  uint64_t bits = 0;
};

struct InputElement {
  std::string element;  ///< "g[b=0,t=16,h=0,k=3]"
  double value = 0;
  std::string nearest_finite;  ///< "-88.2" where bisection found one, else empty
};

struct ChainLink {
  SourceLocation where;
  std::string instruction;
  std::string text;  ///< source line where it can be read
};

/// Where a non-finite value was born.
struct Origin {
  std::string element;  ///< the bad output element walked back from
  std::string kind;     ///< "exp-overflow", "zero-times-infinity", ...
  SourceLocation where;
  std::string source_text;
  std::string instruction;
  std::vector<OriginOperand> operands;
  double result = 0;
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<InputElement> inputs;
  bool inputs_truncated = false;
  std::vector<ChainLink> chain;  ///< origin first, output last
  /// Where an Inf operand of a NaN was itself made by arithmetic.
  std::optional<ChainLink> infinity_made_at;
  std::string sentence;  ///< one line a person reads first
};

/// One origin behind several non-finite elements, for `assay trace --all`.
struct OriginGroup {
  Origin origin;         ///< of the first such element
  int64_t elements = 0;  ///< non-finite output elements whose earliest origin has this kind and source line
  std::vector<std::string> outputs;  ///< "o 96", "final_state 12"
};

}  // namespace assay
