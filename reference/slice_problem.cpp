#include "reference/slice_problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

bool is_head(std::string_view axis) {
  return axis == "H" || axis == "HV" || axis == "HQ";
}

SliceMatrix read_matrix(const Problem& p, std::string_view name, const SliceLayout& layout, bool optional,
                        const Slice& s, int64_t heads) {
  SliceMatrix m{layout.rows(s), layout.columns(), {}, false};
  m.values.assign(static_cast<size_t>(m.rows * m.columns), 0);
  const Tensor* tensor =
      optional ? find_input(p, name, layout.size()) : &require_input(p, name, layout.size());
  if (!tensor) return m;
  m.present = true;
  const int64_t width = m.columns / layout.parts();
  double* to = m.values.data();
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t part = 0; part < layout.parts(); ++part, to += width)
      decode_run(*tensor, layout.row(s, heads, r, part), width, to);
  return m;
}

}  // namespace

double SliceProblem::parameter(std::string_view name) const {
  const auto given = problem->parameters.find(std::string(name));
  if (given != problem->parameters.end()) return given->second;
  for (const ParameterSpec& spec : *parameters)
    if (spec.name == name) return spec.value;
  throw BadInput(fmt::format("parameter '{}': this operator has none of that name", name));
}

SliceLayout::SliceLayout(const ArgumentSpec& argument, const Sizes& sizes, bool per_head) {
  std::vector<int64_t> rest;
  for (std::string_view axis : argument.axes) {
    const int64_t size = sizes.of(axis);
    axes_.push_back({std::string(axis), size});
    if (axis == "T") tokens_ = true;
    if (axis == "B" || axis == "N") sequences_ = true;
    if (axis == "B" || axis == "N" || axis == "T") continue;
    if (per_head && is_head(axis)) {
      heads_ = size;
      for (const int64_t before : rest) parts_ *= before;
    } else {
      rest.push_back(size);
    }
  }
  if (rest.empty()) return;
  columns_ = rest.back();
  for (size_t i = 0; i + 1 < rest.size(); ++i) rows_ *= rest[i];
  if (tokens_) columns_ *= rows_, rows_ = 1;
}

int64_t SliceLayout::row(const Slice& s, int64_t heads, int64_t r, int64_t part) const {
  const int64_t head = heads_ == heads ? s.h : s.h / std::max<int64_t>(1, heads / heads_);
  if (tokens_) return (((s.first_row + r) * parts_ + part) * heads_ + head) * (columns_ / parts_);
  return (((sequences_ ? s.n * heads_ : 0) + head) * rows_ + r) * columns_;
}

int64_t SliceLayout::size() const {
  int64_t size = 1;
  for (const Axis& axis : axes_) size *= axis.size;
  return size;
}

int64_t heads_of(const std::vector<SliceLayout>& inputs, bool per_head) {
  int64_t heads = 1;
  for (const SliceLayout& layout : inputs)
    if (per_head) heads = std::max(heads, layout.heads());
  return heads;
}

SliceProblem read_slice(const Problem& p, const std::vector<ArgumentSpec>& inputs,
                        const std::vector<ArgumentSpec>& outputs,
                        const std::vector<ParameterSpec>& parameters, const Slice& s, bool per_head) {
  std::vector<SliceLayout> layouts;
  for (const ArgumentSpec& a : inputs) layouts.emplace_back(a, p.sizes, per_head);
  SliceProblem x{s, heads_of(layouts, per_head), p.scale, {}, {}, &parameters, &p};
  for (size_t i = 0; i < inputs.size(); ++i)
    x.inputs.push_back(read_matrix(p, inputs[i].name, layouts[i], inputs[i].optional, s, x.heads));
  for (const ArgumentSpec& a : outputs) {
    const SliceLayout layout(a, p.sizes, per_head);
    SliceMatrix d = read_matrix(p, "d" + std::string(a.name), layout, a.role == Role::state, s, x.heads);
    // An output that a group of heads shares is one: its cotangent counts once, with the first of them.
    if (s.h % (x.heads / layout.heads()) != 0) std::fill(d.values.begin(), d.values.end(), 0.0);
    x.cotangents.push_back(d);
  }
  return x;
}

}  // namespace assay
