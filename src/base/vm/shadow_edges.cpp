#include "src/base/vm/shadow_edges.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "src/base/numerics/format.h"

namespace assay::vm {
namespace {

constexpr double kNear = 4, kFar = 16;  // binades: within 4 is near, beyond 16 safe

Dtype format_of_type(ptx::Type type) {
  using ptx::Type;
  if (type == Type::f16 || type == Type::f16x2) return Dtype::fp16;
  if (type == Type::bf16 || type == Type::bf16x2) return Dtype::bf16;
  return type == Type::f64 ? Dtype::fp64 : Dtype::fp32;
}

std::string remaining(double distance, const std::string& edge) {
  if (distance < kNear) return fmt::format("within {:.2g} binades of {}", distance, edge);
  return distance > kFar ? "safe" : fmt::format("{:.3g} binades below {}", distance, edge);
}

}  // namespace

Edge edge_of(const ptx::Form& form, ptx::Type result) {
  const Dtype dtype = format_of_type(result);
  const Format& f = format(dtype);
  using ptx::Operation;
  switch (form.operation) {
    case Operation::ex2:
      return {EdgeKind::exponent, static_cast<double>(f.max_exponent) + 1, f.name};
    case Operation::cvt: {
      // fp32 to fp32 only rounds to integral values or copies.
      const ptx::Type from = form.type();
      const bool narrows = dtype != Dtype::fp64 && from != ptx::Type::f16 && from != ptx::Type::bf16 &&
                           !(from == ptx::Type::f32 && form.types[0] == ptx::Type::f32);
      return narrows ? Edge{EdgeKind::conversion, max_finite(dtype), f.name} : Edge{};
    }
    case Operation::rcp:
      return {EdgeKind::reciprocal, 1 / max_finite(dtype), f.name};
    case Operation::sqrt:
    case Operation::rsqrt:
    case Operation::lg2:
      return {EdgeKind::positive, std::ldexp(1.0, f.min_exponent), f.name};
    case Operation::add:
    case Operation::sub:
    case Operation::mul:
    case Operation::fma:
    case Operation::mad:
    case Operation::div:
    case Operation::mma:
    case Operation::wgmma_mma_async:
    case Operation::wmma_mma:
      return {EdgeKind::magnitude, max_finite(dtype), f.name};
    default:
      return {};
  }
}

ShadowEdge describe_edge(const Edge& edge, const EdgeSeen& seen) {
  ShadowEdge out;
  out.format = edge.format, out.limit = edge.limit;
  switch (edge.kind) {
    case EdgeKind::none:
      break;
    case EdgeKind::exponent:
      out.quantity = EdgeQuantity::argument, out.extreme = seen.largest,
      out.distance = edge.limit - seen.largest;
      if (seen.largest >= edge.limit)
        out.text = fmt::format("saw up to {:.4g}: overflowed (from {:g} on)", seen.largest, edge.limit);
      else if (out.distance < kNear)
        out.text = fmt::format("saw up to {:.4g}: within {:.2g} of overflow (threshold {:g})", seen.largest,
                               out.distance, edge.limit);
      else if (seen.largest <= 0)
        out.text = fmt::format("saw up to {:.4g}: safe", seen.largest);
      else
        out.text = fmt::format("saw up to {:.4g}: {:.4g} below overflow (threshold {:g})", seen.largest,
                               out.distance, edge.limit);
      break;
    case EdgeKind::magnitude:
    case EdgeKind::conversion: {
      const bool sums = edge.kind == EdgeKind::magnitude;
      out.quantity = sums ? EdgeQuantity::result : EdgeQuantity::argument, out.extreme = seen.largest;
      out.distance =
          seen.largest > 0 ? std::log2(edge.limit / seen.largest) : std::numeric_limits<double>::max();
      const std::string what = fmt::format("{} up to {:.4g}", sums ? "gave" : "converted", seen.largest);
      out.text = seen.largest > edge.limit
                     ? fmt::format("{}: overflowed {} (largest {:.6g})", what, edge.format, edge.limit)
                     : fmt::format("{}: {}", what,
                                   remaining(out.distance, fmt::format("overflow of {}", edge.format)));
      break;
    }
    case EdgeKind::reciprocal:
      out.quantity = EdgeQuantity::argument, out.extreme = seen.smallest;
      out.distance = seen.smallest > 0 ? std::log2(seen.smallest / edge.limit) : 0;
      out.text = seen.smallest == 0 ? "divided by zero"
                                    : fmt::format("divisor down to {:.4g}: {}", seen.smallest,
                                                  remaining(out.distance, "overflow"));
      break;
    case EdgeKind::positive:
      out.quantity = EdgeQuantity::argument, out.extreme = seen.smallest;
      out.distance = seen.smallest > 0 ? std::max(0.0, std::log2(seen.smallest / edge.limit)) : 0;
      out.text = seen.smallest < 0 ? fmt::format("saw {:.4g}: negative", seen.smallest)
                 : seen.smallest == 0
                     ? "saw 0"
                     : fmt::format("saw down to {:.4g}: {}", seen.smallest, remaining(out.distance, "zero"));
      break;
  }
  return out;
}

}  // namespace assay::vm
