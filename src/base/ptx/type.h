// Scalar types and state spaces.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::ptx {

/// Scalar types as written; `pred` is a predicate register.
enum class Type : uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  pred
};
int bytes_of(Type);
/// Two 16-bit floats in a word.
constexpr bool is_packed(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2;
}
/// A floating-point type, packed or not.
constexpr bool is_float(Type type) {
  return type >= Type::f16 && type <= Type::f64;
}
constexpr bool is_signed(Type type) {
  return type >= Type::s8 && type <= Type::s64;
}
constexpr bool is_unsigned(Type type) {
  return type >= Type::u8 && type <= Type::u64;
}
std::string_view name_of(Type);
/// "f32" -> Type::f32; nothing for a name that is no type.
std::optional<Type> type_named(std::string_view name);

enum class Space : uint8_t { none, reg, global, shared, local, param, constant, generic };
std::string_view name_of(Space);

}  // namespace assay::ptx
