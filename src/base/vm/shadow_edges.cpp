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

Edge edge_of(std::string_view opcode, ptx::Type result) {
  const Dtype dtype = format_of_type(result);
  const Format& f = format(dtype);
  const auto starts = [&](std::string_view root) { return opcode.starts_with(root); };
  if (starts("ex2.")) return {EdgeKind::exponent, static_cast<double>(f.max_exponent) + 1, f.name};
  if (starts("cvt.")) {
    // fp32 to fp32 only rounds to integral values or copies.
    const bool narrows = dtype != Dtype::fp64 && !opcode.ends_with(".f16") && !opcode.ends_with(".bf16") &&
                         !opcode.ends_with(".f32.f32");
    return narrows ? Edge{EdgeKind::conversion, max_finite(dtype), f.name} : Edge{};
  }
  if (starts("rcp.")) return {EdgeKind::reciprocal, 1 / max_finite(dtype), f.name};
  for (const char* root : {"sqrt.", "rsqrt.", "lg2."})
    if (starts(root)) return {EdgeKind::positive, std::ldexp(1.0, f.min_exponent), f.name};
  for (const char* root : {"add.", "sub.", "mul.", "fma.", "mad.", "div.", "mma.", "wgmma.", "wmma."})
    if (starts(root)) return {EdgeKind::magnitude, max_finite(dtype), f.name};
  return {};
}

ShadowEdge describe_edge(const Edge& edge, const EdgeSeen& seen) {
  ShadowEdge out;
  out.format = edge.format, out.limit = edge.limit;
  switch (edge.kind) {
    case EdgeKind::none:
      break;
    case EdgeKind::exponent:
      out.quantity = "argument", out.extreme = seen.largest, out.distance = edge.limit - seen.largest;
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
      out.quantity = sums ? "result" : "argument", out.extreme = seen.largest;
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
      out.quantity = "argument", out.extreme = seen.smallest;
      out.distance = seen.smallest > 0 ? std::log2(seen.smallest / edge.limit) : 0;
      out.text = seen.smallest == 0 ? "divided by zero"
                                    : fmt::format("divisor down to {:.4g}: {}", seen.smallest,
                                                  remaining(out.distance, "overflow"));
      break;
    case EdgeKind::positive:
      out.quantity = "argument", out.extreme = seen.smallest;
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
