#include "tools/fidelity/comparison.h"

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "tools/fidelity/program.h"

namespace assay::fidelity {
namespace {

/// Warps whose indices are looked into one by one.
constexpr size_t warps_examined = 4;

Tensor digests(Backend& engine, const Program& plan) {
  Outcome outcome = engine.run(plan, {});
  if (outcome.trap) throw BadInput(engine.name() + ": " + outcome.trap->message);
  return std::move(outcome.outputs.at("digests"));
}

/// The differing indices of the warp that starts at `base`.
void examine(const Form& form, uint32_t base, uint32_t stride, Backend& tested, Backend& expected,
             Comparison& result) {
  const Program plan = bare_plan(form, base, form.group, stride);
  const Tensor a = digests(tested, plan), b = digests(expected, plan);
  for (uint32_t k = 0; k < stride; ++k)
    for (uint32_t lane = 0; lane < form.group; ++lane) {
      const int64_t at = int64_t{k} * form.group + lane;
      if (a.bits(at) == b.bits(at)) continue;
      ++result.mismatches;
      if (result.first) continue;
      Mismatch made{.index = uint64_t{base} + uint64_t{lane} * stride + k,
                    .tested = a.bits(at),
                    .expected = b.bits(at)};
      for (size_t i = 0; i < form.operands.size(); ++i)
        made.operands.push_back(
            digests(tested, bare_plan(form, base, form.group, stride, static_cast<int>(i))).bits(at));
      result.first = std::move(made);
    }
}

}  // namespace

Comparison compare(const Form& form, uint64_t base, int64_t count, uint32_t stride, Backend& tested,
                   Backend& expected) {
  Comparison result;
  const auto start = static_cast<uint32_t>(base), threads = static_cast<uint32_t>(count / stride);
  try {
    const Program plan = digest_plan(form, start, threads, stride);
    const Tensor b = digests(expected, plan), a = digests(tested, plan);
    result.results = count * static_cast<int64_t>(form.results.size());
    if (a.data == b.data) return result;
    std::vector<uint32_t> warps;
    for (uint32_t t = 0; t < threads; ++t)
      if (a.bits(t) != b.bits(t) && (warps.empty() || warps.back() != t / form.group))
        warps.push_back(t / form.group);
    result.at_least = warps.size() > warps_examined;
    warps.resize(std::min(warps.size(), warps_examined));
    for (const uint32_t warp : warps)
      examine(form, start + warp * form.group * stride, stride, tested, expected, result);
    if (result.mismatches == 0) result.mismatches = 1, result.at_least = true;  // seen only together
  } catch (const BadInput& refusal) {
    result.refused = refusal.what();
    result.results = 0;
  }
  return result;
}

uint64_t subset_digest(const Form& form, Backend& engine) {
  uint64_t place = 0xcbf29ce484222325u;
  for (const char letter : form.name) place = (place ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  const int64_t places = std::max<int64_t>(std::min<int64_t>(form.indices, 1 << 20) / subset_indices, 1);
  const auto base = static_cast<uint32_t>((place >> 20) % static_cast<uint64_t>(places) * subset_indices);
  const Tensor values = digests(engine, digest_plan(form, base, subset_indices / fold, fold));
  uint64_t digest = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < values.size(); ++i) digest = (digest ^ values.bits(i)) * 0x100000001b3u;
  return digest;
}

}  // namespace assay::fidelity
