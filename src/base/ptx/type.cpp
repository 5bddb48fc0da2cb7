#include "src/base/ptx/type.h"

#include <array>
#include <utility>

namespace assay::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  int bytes;
};

constexpr std::array<TypeRow, 22> rows = {{
    {Type::none, "", 0},     {Type::b8, "b8", 1},         {Type::b16, "b16", 2},   {Type::b32, "b32", 4},
    {Type::b64, "b64", 8},   {Type::b128, "b128", 16},    {Type::u8, "u8", 1},     {Type::u16, "u16", 2},
    {Type::u32, "u32", 4},   {Type::u64, "u64", 8},       {Type::s8, "s8", 1},     {Type::s16, "s16", 2},
    {Type::s32, "s32", 4},   {Type::s64, "s64", 8},       {Type::f16, "f16", 2},   {Type::f16x2, "f16x2", 4},
    {Type::bf16, "bf16", 2}, {Type::bf16x2, "bf16x2", 4}, {Type::tf32, "tf32", 4}, {Type::f32, "f32", 4},
    {Type::f64, "f64", 8},   {Type::pred, "pred", 0},
}};

}  // namespace

int bytes_of(Type type) {
  return rows[static_cast<size_t>(type)].bytes;
}

std::string_view name_of(Type type) {
  return rows[static_cast<size_t>(type)].name;
}

std::string_view name_of(Space space) {
  static constexpr std::string_view names[] = {"",      "reg",   "global", "shared",
                                               "local", "param", "const",  "generic"};
  return names[static_cast<size_t>(space)];
}

std::optional<Type> type_named(std::string_view name) {
  for (const TypeRow& row : rows)
    if (row.name == name && row.type != Type::none) return row.type;
  return std::nullopt;
}

}  // namespace assay::ptx
