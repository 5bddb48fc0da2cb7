// Scalar types by name.
#pragma once
#include <optional>
#include <string_view>

#include "src/base/ptx/program.h"

namespace assay::ptx {

/// "f32" -> Type::f32; nothing for a name that is no type.
std::optional<Type> type_named(std::string_view name);

}  // namespace assay::ptx
