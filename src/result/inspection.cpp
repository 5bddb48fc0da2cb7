#include "src/result/inspection.h"

#include "src/result/document.h"

namespace assay {
namespace {

using nlohmann::json;

/// The class's first element by its index in the shape.
json class_of(const ValueClass& values, const std::vector<int64_t>& shape) {
  json result{{"count", values.count}, {"first", nullptr}};
  if (values.count == 0) return result;
  std::vector<int64_t> index(shape.size());
  int64_t flat = values.first;
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  result["first"] = index;
  return result;
}

json to_json(const InspectedTensor& tensor) {
  const TensorSummary& s = tensor.summary;
  json exponents = json::object();
  for (const auto& [e, n] : s.exponents) exponents[std::to_string(e)] = n;
  json result{{"dtype", format(tensor.dtype).name},
              {"shape", tensor.shape},
              {"elements", s.elements},
              {"min", nullptr},
              {"max", nullptr},
              {"zeros", s.zeros},
              {"subnormals", s.subnormals},
              {"exponents", exponents},
              {"nan", class_of(s.nan, tensor.shape)},
              {"inf", class_of(s.plus_infinity, tensor.shape)},
              {"-inf", class_of(s.minus_infinity, tensor.shape)}};
  if (s.min) result["min"] = *s.min, result["max"] = *s.max;
  return result;
}

json to_json(const OperatorFit& fit) {
  json result{{"operator", fit.name},       {"fits", fit.fits},       {"matched", fit.matched},
              {"expected", fit.expected},   {"missing", fit.missing}, {"unused", fit.unused},
              {"complaint", fit.complaint}, {"notes", fit.notes}};
  if (!fit.fits) return result;
  const Sizes sizes = sizes_of(fit.case_);
  for (const char* axis : kSizedAxes) result["sizes"][axis] = sizes.of(axis);
  result["layout"] = fit.case_.layout;
  result["direction"] = fit.case_.direction;
  return result;
}

}  // namespace

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

json to_json(const Inspection& inspection) {
  json document = document_frame("inspection");
  document["file"] = inspection.file;
  document["tensors"] = json::object();
  for (const auto& [name, tensor] : inspection.tensors) document["tensors"][name] = to_json(tensor);
  document["operators"] = json::array();
  for (const OperatorFit& fit : inspection.operators) document["operators"].push_back(to_json(fit));
  return document;
}

}  // namespace assay
