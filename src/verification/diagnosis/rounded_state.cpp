#include "src/verification/diagnosis/rounded_state.h"

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

constexpr int64_t kMostPieces = 512;

/// Names of each state as it goes in and comes out, in the operator's order.
std::vector<std::pair<std::string, std::string>> state_names(const FailingRun& run) {
  std::vector<std::string> in, out;
  for (const ArgumentSpec& a : run.op->inputs)
    if (a.role == Role::state) in.emplace_back(a.name);
  for (const ArgumentSpec& a : run.op->outputs)
    if (a.role == Role::state) out.emplace_back(a.name);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < std::min(in.size(), out.size()); ++i) pairs.emplace_back(in[i], out[i]);
  return pairs;
}

/// Tokens [start, start + chunk) of every sequence, packed.
struct Piece {
  std::vector<int64_t> rows, offsets{0};
};
Piece piece_of(const FailingRun& run, int64_t start, int64_t chunk) {
  Piece piece;
  for (const auto& [first, length] : run.spans()) {
    for (int64_t t = start; t < std::min(length, start + chunk); ++t) piece.rows.push_back(first + t);
    piece.offsets.push_back(static_cast<int64_t>(piece.rows.size()));
  }
  return piece;
}

Tensor rows_of(const Tensor& t, const std::vector<int64_t>& rows) {
  std::vector<Axis> axes = t.axes;
  for (Axis& a : axes) {
    if (a.name == "B") a.size = 1;
    if (a.name == "T") a.size = static_cast<int64_t>(rows.size());
  }
  Tensor out(t.name, t.dtype, axes);
  const int64_t width = token_width(t);
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t c = 0; c < width; ++c)
      out.set_bits(static_cast<int64_t>(r) * width + c, t.bits(rows[r] * width + c));
  return out;
}

Tensor rounded_copy(const std::string& name, const ReferenceOutput& state,
                    const std::function<double(double)>& rounded) {
  Tensor t(name, Dtype::fp64, state.axes);
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, rounded(state.mid[static_cast<size_t>(i)]));
  return t;
}

/// The outputs of one piece put where they belong; states of the last piece stay.
void keep_outputs(const ReferenceResult& result, const Piece& piece, Prediction& prediction) {
  for (const ReferenceOutput& o : result.outputs) {
    PredictedOutput& to = prediction.at(o.name);
    const bool of_tokens =
        std::any_of(o.axes.begin(), o.axes.end(), [](const Axis& a) { return a.name == "T"; });
    if (!of_tokens) continue;
    const size_t width = piece.rows.empty() ? 0 : o.mid.size() / piece.rows.size();
    for (size_t r = 0; r < piece.rows.size(); ++r)
      for (size_t c = 0; c < width; ++c)
        to.mid[static_cast<size_t>(piece.rows[r]) * width + c] = o.mid[r * width + c];
  }
}

}  // namespace

std::optional<Prediction> with_rounded_state(const FailingRun& run, int64_t chunk,
                                             const std::function<double(double)>& rounded) {
  int64_t longest = 0;
  for (const auto& [first, length] : run.spans()) longest = std::max(longest, length);
  if (longest > chunk * kMostPieces) return std::nullopt;
  Prediction prediction = reference_prediction(run);
  TensorMap states;
  for (const auto& [in, out] : state_names(run))
    if (run.inputs().count(in)) states[in] = run.inputs().at(in);
  for (int64_t start = 0; start < longest; start += chunk) {
    const Piece piece = piece_of(run, start, chunk);
    TensorMap inputs = run.inputs();
    for (auto& [name, tensor] : inputs)
      if (token_width(tensor) > 0) tensor = rows_of(tensor, piece.rows);
    for (const auto& [name, tensor] : states) inputs[name] = tensor;
    Problem p = run.problem;
    p.inputs = &inputs;
    p.sizes.B = 1, p.sizes.T = static_cast<int64_t>(piece.rows.size()), p.sizes.N = run.sequences();
    p.cu_seqlens = piece.offsets;
    const ReferenceResult result = run.op->evaluate(p);
    keep_outputs(result, piece, prediction);
    for (const auto& [in, out] : state_names(run))
      for (const ReferenceOutput& o : result.outputs)
        if (o.name == out) states[in] = rounded_copy(in, o, rounded);
  }
  for (const auto& [in, out] : state_names(run)) {
    const auto to = prediction.find(out);
    if (to == prediction.end() || !states.count(in)) continue;
    for (size_t i = 0; i < to->second.mid.size(); ++i)
      to->second.mid[i] = states.at(in).value(static_cast<int64_t>(i));
  }
  return prediction;
}

}  // namespace assay
