// What a call of the engine's C surface gives back.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "include/assay_engine.h"
#include "src/base/tensor/tensor.h"

struct assay_answer {
  std::string text;
  std::vector<assay::Tensor> arrays;
  std::vector<std::string> axes;  ///< "B,T,H" of each, filled when it is asked for
};

namespace assay::binding {

std::string text_of(const nlohmann::json&);

}  // namespace assay::binding
