// What assay_call can do, by name.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/binding/answer.h"

namespace assay::binding {

struct Request {
  const nlohmann::json& given;
  const std::vector<assay_array>& arrays;
  assay_answer& answer;  ///< for arrays; the text is what an operation returns
  const assay_control* control = nullptr;
  const assay_function* function = nullptr;  ///< of those that take one

  /// Tells the caller what is being done.
  void tell(const std::string& line) const;
};

struct Operation {
  const char *name, *summary;
  nlohmann::json (*run)(const Request&);
};
/// Of given_case.cpp's kernels: fuzzed, or one case of theirs, by its token (src/binding/fuzzing.cpp).
nlohmann::json fuzz_function(const Request&);
nlohmann::json replay_function(const Request&);
/// One call of a function that no operator describes (src/binding/function_check.cpp).
nlohmann::json check_function(const Request&);
/// What the result says, by the names of its notes.
nlohmann::json operator_of(const Request&);
/// Throws BadInput for a name that there is not.
const Operation& operation_named(const std::string& name);

}  // namespace assay::binding
