// What modules say of their arithmetic: which preset fits an operator that they compute, and where each
// rounding stands that a declaration has to cover.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay {

/// `instruction` stands `count` times at `line` ("chunk_h.py:140"; empty without line numbers) of `kernel`:
/// what it is `of`, and which `field` of arithmetic.def has to cover it.
struct RoundingPlace {
  std::string kernel, line, instruction;
  int64_t count = 0;
  std::string of, field;

  bool operator==(const RoundingPlace&) const = default;
};

struct ProposedArithmetic {
  nlohmann::json arithmetic;  ///< as a plan's "arithmetic"; null where no preset is known to fit
  std::string why;            ///< "no launch multiplies matrices"
  std::vector<RoundingPlace> places;
  std::string looser;  ///< why what is declared is far looser than the program; else empty
};

/// Of all that one call launches. `op`: the operator that it computes, or "" where that is not known.
/// `declared`: what somebody would declare, null for nothing. A body that cannot be read is BadInput.
ProposedArithmetic propose_arithmetic(const std::vector<ptx::Module>&, const std::string& op,
                                      const nlohmann::json& declared);
/// For people: a line for the proposal, one for each place.
std::string text_of(const ProposedArithmetic&);
nlohmann::json to_json(const ProposedArithmetic&);

}  // namespace assay
