// Named causes of a finding, and whose fault it is.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"

namespace assay {

struct Diagnosis {
  std::string cause;
  std::string explanation;
  double score = 0;
  std::vector<std::string> evidence;  ///< what speaks for it
  std::vector<std::string> against;   ///< and what against
};
template <typename Io>
void fields(Io& io, Diagnosis& x) {
  io.type("diagnosis");
  ASSAY_FIELD(cause);
  ASSAY_FIELD(explanation);
  ASSAY_FIELD(score);
  ASSAY_FIELD(evidence);
  ASSAY_LATER(against);
}

/// Whose fault a finding is, where a GPU ran beside the machine.
enum class Fault : uint8_t {
  none,
  kernel,                ///< or its code generator
  compiler_or_hardware,  ///< what was made of the PTX, or what runs it
  both,
  race,
};
constexpr std::array<std::string_view, 5> names_of(Fault) {
  return {"none", "kernel", "compiler-or-hardware", "kernel and compiler-or-hardware", "race"};
}

struct Triage {
  Fault fault = Fault::none;
  std::string explanation;            ///< one line
  std::vector<std::string> evidence;  ///< machine against reference, GPU against machine, GPU twice, races
};
template <typename Io>
void fields(Io& io, Triage& x) {
  io.type("triage", "whose fault it is, where a GPU ran beside the machine");
  ASSAY_FIELD(fault);
  ASSAY_FIELD(explanation);
  ASSAY_FIELD(evidence);
}

}  // namespace assay
