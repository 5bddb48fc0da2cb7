// Where a non-finite value was born, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/program/outcome.h"

namespace assay {

struct OriginOperand {
  std::string name;  ///< register or immediate as written in the PTX
  std::string type;  ///< "f32", "bf16x2", ...
  double value = 0;
  uint64_t bits = 0;
};
template <typename Io>
void fields(Io& io, OriginOperand& x) {
  io.type("operand");
  ASSAY_FIELD(name);
  ASSAY_FIELD(type);
  ASSAY_FIELD(value);
  io("bits", Bits{x.bits});
}

struct InputElement {
  std::string element;  ///< "g[b=0,t=16,h=0,k=3]"
  double value = 0;
  std::string nearest_finite;  ///< "-88.2" where bisection found one, else empty
};
template <typename Io>
void fields(Io& io, InputElement& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(nearest_finite);
}

struct ChainLink {
  SourceLocation where;
  std::string instruction;
  std::string text;  ///< source line where it can be read
};
template <typename Io>
void fields(Io& io, ChainLink& x) {
  io.type("chain_link");
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(text);
}

/// What made a value that is not finite from values that are, or of NaN from operands none of which is; the
/// last four: it came from outside.
enum class OriginKind : uint8_t {
  exp_overflow,
  zero_times_infinity,
  infinity_minus_infinity,
  infinity_divided_by_infinity,
  division_by_zero,
  logarithm_of_zero,
  negative_argument,  ///< of a root or a logarithm
  infinite_argument,  ///< of a sine or a cosine
  conversion_overflow,
  accumulation_overflow,
  literal,
  input,
  unwritten_memory,
  beyond,  ///< before where the recording begins
};
constexpr std::array<std::string_view, 14> names_of(OriginKind) {
  return {"exp-overflow",
          "zero-times-infinity",
          "infinity-minus-infinity",
          "infinity-divided-by-infinity",
          "division-by-zero",
          "logarithm-of-zero",
          "negative-argument",
          "infinite-argument",
          "conversion-overflow",
          "accumulation-overflow",
          "literal",
          "input",
          "unwritten-memory",
          "beyond"};
}

/// Where a non-finite value was born.
struct Origin {
  std::string element;  ///< the bad output element walked back from
  OriginKind kind = OriginKind::literal;
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
template <typename Io>
void fields(Io& io, Origin& x) {
  io.type("origin");
  ASSAY_FIELD(element);
  ASSAY_FIELD(kind);
  ASSAY_FIELD(where);
  ASSAY_FIELD(source_text);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(operands);
  ASSAY_FIELD(result);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(inputs);
  ASSAY_FIELD(inputs_truncated);
  ASSAY_FIELD(chain);
  ASSAY_FIELD(infinity_made_at);
  ASSAY_FIELD(sentence);
}

/// One origin behind several non-finite elements, for `assay trace --all`.
struct OriginGroup {
  Origin origin;         ///< of the first such element
  int64_t elements = 0;  ///< non-finite output elements whose earliest origin has this kind and source line
  std::vector<std::string> outputs;  ///< "o 96", "final_state 12"
};
template <typename Io>
void fields(Io& io, OriginGroup& x) {
  io.type("origin_group");
  ASSAY_FIELD(origin);
  ASSAY_FIELD(elements, "non-finite output elements with an origin of this kind on this line");
  ASSAY_FIELD(outputs);
}

}  // namespace assay
