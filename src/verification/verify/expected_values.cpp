#include "src/verification/verify/expected_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

double rms_of_tensor(const Tensor& tensor) {
  double squares = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (const double x = tensor.value(i); std::isfinite(x)) squares += x * x, ++count;
  return count ? std::sqrt(squares / static_cast<double>(count)) : 0;
}

struct Judged {
  ElementVerdict verdict = ElementVerdict::ok;
  double error = 0, bound = 0, ratio = 0;
};

Judged judge(double got, double expected, bool same_bits, double tolerance, double rms) {
  Judged j;
  j.bound = tolerance * (std::fabs(expected) + rms);
  if (same_bits || (std::isnan(got) && std::isnan(expected)) || (std::isinf(got) && got == expected))
    return j;
  if (!std::isfinite(expected)) {
    j.verdict = ElementVerdict::wrong_class;
  } else if (!std::isfinite(got)) {
    j.verdict = ElementVerdict::nonfinite;
  } else {
    j.error = std::fabs(got - expected);
    if (tolerance > 0 && j.error <= j.bound) {
      j.ratio = j.bound > 0 ? j.error / j.bound : 0;
      return j;
    }
    j.verdict = ElementVerdict::violation;
  }
  j.ratio = j.verdict == ElementVerdict::violation && j.bound > 0 ? j.error / j.bound : HUGE_VAL;
  return j;
}

OutputComparison compare(const Tensor& now, const Tensor& expected, double tolerance) {
  OutputComparison o;
  o.name = now.name, o.axes = now.axes, o.dtype = now.dtype, o.elements = now.size();
  const double rms = rms_of_tensor(expected);
  for (int64_t i = 0; i < now.size(); ++i) {
    const double got = now.value(i), right = expected.value(i);
    const bool same = now.dtype == expected.dtype ? now.bits(i) == expected.bits(i) : got == right;
    const Judged j = judge(got, right, same, tolerance, rms);
    o.ok += j.verdict == ElementVerdict::ok;
    o.violation += j.verdict == ElementVerdict::violation;
    o.nonfinite += j.verdict == ElementVerdict::nonfinite;
    o.wrong_class += j.verdict == ElementVerdict::wrong_class;
    o.max_ratio = std::max(o.max_ratio, j.ratio);
    o.verdicts.push_back(j.verdict);
    if (o.worst.flat >= 0 && j.ratio <= o.worst.ratio) continue;
    WorstElement& w = o.worst;
    w.element = now.element_name(i), w.flat = i, w.got = got, w.got_bits = now.bits(i);
    w.expected = right, w.expected_rounded = round_to(now.dtype, right);
    w.expected_bits = encode(now.dtype, right);
    w.absolute = j.error, w.relative = right != 0 ? j.error / std::fabs(right) : 0;
    w.ulp = std::isfinite(right) ? j.error / ulp(now.dtype, right) : 0;
    w.bound = j.bound, w.ratio = j.ratio;
  }
  return o;
}

}  // namespace

void hold_against_expected(const TensorMap& written, const TensorMap& expected, double tolerance,
                           Verification& v) {
  for (const auto& [name, right] : expected) {
    const auto found = written.find(name);
    if (found == written.end()) {
      std::string known;
      for (const auto& [other, tensor] : written) known += (known.empty() ? "" : ", ") + other;
      throw BadInput(fmt::format("--expect: {} is no tensor that this run writes; it writes {}", name,
                                 known.empty() ? "nothing" : known));
    }
    if (found->second.size() != right.size())
      throw BadInput(fmt::format("--expect: {} has {} elements, the run's has {} {}", name, right.size(),
                                 found->second.size(), found->second.shape_text()));
    std::erase_if(v.outputs, [&](const OutputComparison& o) { return o.name == name; });
    v.outputs.push_back(compare(found->second, right, tolerance));
  }
}

}  // namespace assay
