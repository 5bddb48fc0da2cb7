#include "src/case/operator_fit.h"

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "src/case/given_inputs.h"

namespace assay {
namespace {

bool has_cotangents(const Operator& op, const TensorMap& raw) {
  const std::vector<ArgumentSpec> specs = op.cotangents();
  return std::all_of(specs.begin(), specs.end(), [&](const ArgumentSpec& spec) {
    return spec.optional || raw.contains(std::string(spec.name));
  });
}

OperatorFit fit_operator(const Operator& op, const TensorMap& raw, Case base, int64_t heads,
                         const std::string& source) {
  OperatorFit fit{op.name};
  if (has_cotangents(op, raw)) base.direction = Direction::both;
  TensorMap own;
  for (const ArgumentSpec& spec : inputs_of(base, op)) {
    const std::string name(spec.name);
    if (const auto found = raw.find(name); found != raw.end()) {
      own.insert(*found);
      fit.matched.push_back(name);
    } else if (!spec.optional) {
      fit.missing.push_back(name);
    }
  }
  for (const ArgumentSpec& spec : possible_outputs(base, op))
    if (const auto found = raw.find(std::string(spec.name)); found != raw.end()) {
      own.insert(*found);
      fit.expected.emplace_back(spec.name);
    }
  for (const auto& [name, tensor] : raw)
    if (!own.contains(name) && name != "cu_seqlens") fit.unused.push_back(name);
  if (const auto offsets = raw.find("cu_seqlens"); offsets != raw.end()) own.insert(*offsets);
  if (!fit.missing.empty()) return fit;
  try {
    GivenInputs given = fit_inputs(base, op, std::move(own), source, heads);
    fit.fits = true;
    fit.case_ = std::move(given.case_);
    fit.notes = std::move(given.notes);
  } catch (const BadInput& error) {
    fit.complaint = error.what();
  }
  return fit;
}

/// Nearer first: it fits, its needed inputs are there, few are missing, many tensors are used.
bool is_nearer(const OperatorFit& a, const OperatorFit& b) {
  if (a.fits != b.fits) return a.fits;
  if (a.missing.size() != b.missing.size()) return a.missing.size() < b.missing.size();
  return a.matched.size() > b.matched.size();
}

}  // namespace

std::vector<OperatorFit> fit_operators(const TensorMap& raw, const Case& base, int64_t heads,
                                       const std::string& source) {
  std::vector<OperatorFit> fits;
  for (const Operator& op : operators()) fits.push_back(fit_operator(op, raw, base, heads, source));
  std::stable_sort(fits.begin(), fits.end(), is_nearer);
  return fits;
}

}  // namespace assay
