#include "src/base/watch/float_type.h"

#include <bit>

#include "src/base/numerics/format.h"

namespace assay::watch {
namespace {

using ptx::Type;

Dtype dtype_of(Type type) {
  switch (element_of(type)) {
    case Type::f64:
      return Dtype::fp64;
    case Type::f16:
      return Dtype::fp16;
    case Type::bf16:
      return Dtype::bf16;
    default:
      return Dtype::fp32;
  }
}

}  // namespace

Type element_of(Type type) {
  return type == Type::f16x2 ? Type::f16 : type == Type::bf16x2 ? Type::bf16 : type;
}

int bits_of(Type type) {
  return 8 * ptx::bytes_of(element_of(type));
}

double value_of(Type type, uint64_t bits, int half) {
  const int width = bits_of(type);
  if (width < 64) bits = bits >> (width * half) & ((uint64_t{1} << width) - 1);
  return decode(dtype_of(type), bits);
}

double largest_of(Type type) {
  switch (element_of(type)) {
    case Type::f64:
      return 0x1.fffffffffffffp1023;
    case Type::f16:
      return 65504;
    case Type::bf16:
      return 0x1.fep127;
    default:
      return 0x1.fffffep127;
  }
}

uint64_t literal_bits(const ptx::Operand& literal, Type type) {
  if (!literal.is_float_literal) return literal.bits;
  const bool wide = literal.literal_bytes == 8;
  if (type == Type::f64)
    return wide ? literal.bits
                : std::bit_cast<uint64_t>(
                      static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(literal.bits))));
  if (!wide) return literal.bits;
  return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits)));
}

}  // namespace assay::watch
