#include "src/result/inspection.h"

#include "src/result/document.h"

namespace assay {

InspectedClass class_of(const ValueClass& values, const std::vector<int64_t>& shape) {
  InspectedClass result{values.count, std::nullopt};
  if (values.count == 0) return result;
  std::vector<int64_t>& index = result.first.emplace(shape.size());
  int64_t flat = values.first;
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return result;
}

Inspection inspect(const std::string& file, const TensorMap& tensors, std::vector<OperatorFit> fits) {
  Inspection inspection{file, {}, std::move(fits)};
  for (const auto& [name, tensor] : tensors) {
    InspectedTensor& of = inspection.tensors[name];
    of.dtype = tensor.dtype;
    for (const Axis& axis : tensor.axes) of.shape.push_back(axis.size);
    of.summary = summary_of(tensor);
  }
  return inspection;
}

nlohmann::json to_json(const Inspection& inspection) {
  return document("inspection", inspection);
}

}  // namespace assay
