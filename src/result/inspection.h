// What a file of tensors holds, as plain data, and its JSON.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/case/operator_fit.h"
#include "src/base/tensor/tensor_summary.h"

namespace assay {

struct InspectedTensor {
  Dtype dtype = Dtype::fp32;
  std::vector<int64_t> shape;
  TensorSummary summary;
};

struct Inspection {  ///< `assay inspect`
  std::string file;
  std::map<std::string, InspectedTensor> tensors;
  std::vector<OperatorFit> operators;  ///< all, the nearest first
};

/// The axes that a case gives sizes, in the order in which they are told.
inline constexpr const char* kSizedAxes[] = {"B", "T", "H", "HV", "K", "V", "M", "N"};

Inspection inspect(const std::string& file, const TensorMap&, std::vector<OperatorFit>);
nlohmann::json to_json(const Inspection&);

}  // namespace assay
