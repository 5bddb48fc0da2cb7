#include "src/base/vm/shadow_edges.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "src/base/numerics/format.h"
#include "src/base/vm/error_shadow.h"

namespace assay::vm {
namespace {

constexpr double kNear = 4, kFar = 16;  // binades: within 4 is near, beyond 16 safe

std::string remaining(double distance, const std::string& edge) {
  if (distance < kNear) return fmt::format("within {:.2g} binades of {}", distance, edge);
  return distance > kFar ? "safe" : fmt::format("{:.3g} binades below {}", distance, edge);
}

}  // namespace

Edge edge_of(const ptx::Form& form, ptx::Type result) {
  const Dtype dtype = dtype_of(error_kind_of(result));
  const Format& f = format(dtype);
  using ptx::Operation;
  using enum Operation;
  const Operation operation = form.operation;
  const ptx::Type from = form.type();
  // fp32 to fp32 only rounds to integral values or copies.
  const bool narrows = dtype != Dtype::fp64 && from != ptx::Type::f16 && from != ptx::Type::bf16 &&
                       !(from == ptx::Type::f32 && form.types[0] == ptx::Type::f32);
  if (operation == ex2) return {EdgeKind::exponent, static_cast<double>(f.max_exponent) + 1, f.name};
  if (operation == cvt && narrows) return {EdgeKind::conversion, max_finite(dtype), f.name};
  if (operation == rcp) return {EdgeKind::reciprocal, 1 / max_finite(dtype), f.name};
  if (is_one_of(operation, Operation::sqrt, rsqrt, lg2))
    return {EdgeKind::positive, std::ldexp(1.0, f.min_exponent), f.name};
  if (is_one_of(operation, add, sub, mul, Operation::fma, mad, Operation::div, mma, wgmma_mma_async,
                wmma_mma))
    return {EdgeKind::magnitude, max_finite(dtype), f.name};
  return {};
}

ShadowEdge describe_edge(const Edge& edge, const EdgeSeen& seen) {
  const double limit = edge.limit, low = seen.smallest, high = seen.largest;
  const auto saw = [&](EdgeQuantity quantity, double extreme, double distance, std::string text) {
    return ShadowEdge{.quantity = quantity,
                      .format = std::string(edge.format),
                      .extreme = extreme,
                      .limit = limit,
                      .distance = distance,
                      .text = std::move(text)};
  };
  switch (edge.kind) {
    case EdgeKind::none:
      break;
    case EdgeKind::exponent: {
      const double left = limit - high;
      return saw(EdgeQuantity::argument, high, left,
                 fmt::format("saw up to {:.4g}: ", high) +
                     (left <= 0      ? fmt::format("overflowed (from {:g} on)", limit)
                      : left < kNear ? fmt::format("within {:.2g} of overflow (threshold {:g})", left, limit)
                      : high <= 0    ? "safe"
                                     : fmt::format("{:.4g} below overflow (threshold {:g})", left, limit)));
    }
    case EdgeKind::magnitude:
    case EdgeKind::conversion: {
      const bool sums = edge.kind == EdgeKind::magnitude;
      const double left = high > 0 ? std::log2(limit / high) : std::numeric_limits<double>::max();
      return saw(sums ? EdgeQuantity::result : EdgeQuantity::argument, high, left,
                 fmt::format("{} up to {:.4g}: {}", sums ? "gave" : "converted", high,
                             high > limit ? fmt::format("overflowed {} (largest {:.6g})", edge.format, limit)
                                          : remaining(left, fmt::format("overflow of {}", edge.format))));
    }
    case EdgeKind::reciprocal: {
      const double left = low > 0 ? std::log2(low / limit) : 0;
      return saw(EdgeQuantity::argument, low, left,
                 low == 0 ? "divided by zero"
                          : fmt::format("divisor down to {:.4g}: {}", low, remaining(left, "overflow")));
    }
    case EdgeKind::positive: {
      const double left = low > 0 ? std::max(0.0, std::log2(low / limit)) : 0;
      return saw(EdgeQuantity::argument, low, left,
                 low < 0    ? fmt::format("saw {:.4g}: negative", low)
                 : low == 0 ? "saw 0"
                            : fmt::format("saw down to {:.4g}: {}", low, remaining(left, "zero")));
    }
  }
  return saw(EdgeQuantity::argument, 0, 0, "");
}

}  // namespace assay::vm
