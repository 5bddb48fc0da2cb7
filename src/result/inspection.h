// What a file of tensors holds, as plain data, and its JSON.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/case/operator_fit.h"

namespace assay {

/// The axes that a case gives sizes, in the order in which they are told.
inline constexpr const char* kSizedAxes[] = {"B", "T", "H", "HV", "K", "V", "M", "N"};

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

/// Values of one class, with the first by its index in the shape.
struct InspectedClass {
  int64_t count = 0;
  std::optional<std::vector<int64_t>> first;
};
template <typename Io>
void fields(Io& io, InspectedClass& x) {
  io.type("value_class");
  ASSAY_FIELD(count);
  ASSAY_FIELD(first, "index of the first such element");
}
InspectedClass class_of(const ValueClass&, const std::vector<int64_t>& shape);

template <typename Io>
void fields(Io& io, InspectedTensor& x) {
  io.type("inspected_tensor");
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(shape);
  io("elements", x.summary.elements);
  io("min", x.summary.min, "of the finite values; null where there is none");
  io("max", x.summary.max);
  io("zeros", x.summary.zeros);
  io("subnormals", x.summary.subnormals);
  io("exponents", x.summary.exponents,
     "finite values other than zero by their binary exponent e, 2^e <= |x| < 2^(e+1); empty for integers");
  io.made("nan", [&] { return class_of(x.summary.nan, x.shape); });
  io.made("inf", [&] { return class_of(x.summary.plus_infinity, x.shape); });
  io.made("-inf", [&] { return class_of(x.summary.minus_infinity, x.shape); });
}

struct FittedSizes {
  Sizes sizes;
};
template <typename Io>
void fields(Io& io, FittedSizes& x) {
  for (const char* axis : kSizedAxes) io.made(axis, [&] { return x.sizes.of(axis); });
}

template <typename Io>
void fields(Io& io, OperatorFit& x) {
  io.type("operator_fit");
  io("operator", x.name);
  ASSAY_FIELD(fits);
  ASSAY_FIELD(matched, "inputs that a tensor is named after");
  ASSAY_FIELD(expected, "outputs that a tensor is named after");
  ASSAY_FIELD(missing, "inputs that are needed and not there");
  ASSAY_FIELD(unused, "tensors that are neither");
  ASSAY_FIELD(complaint, "why the tensors do not go together; empty where they do");
  ASSAY_FIELD(notes, "in which order tensors are held");
  io.made_where(
      x.fits, "sizes", [&] { return FittedSizes{sizes_of(x.case_)}; }, "where it fits");
  io.made_where(
      x.fits, "layout", [&] { return x.case_.layout; }, "where it fits: as --layout takes it");
  io.made_where(
      x.fits, "direction", [&] { return x.case_.direction; }, "where it fits");
}

template <typename Io>
void fields(Io& io, Inspection& x) {
  io.type("", "assay inspect: what the tensors of a file are, and the operators, the nearest first");
  ASSAY_FIELD(file);
  ASSAY_FIELD(tensors);
  ASSAY_FIELD(operators);
}

Inspection inspect(const std::string& file, const TensorMap&, std::vector<OperatorFit>);
nlohmann::json to_json(const Inspection&);

}  // namespace assay
