// What a module of PTX begins with: its version and target.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/ptx/program.h"

namespace assay::watch {

/// Behind the directives that a text begins with.
size_t behind_header(std::string_view text);

bool is_at_least(const ptx::Module&, double version);
/// Than activemask, and than lanes that run apart.
bool is_older(const ptx::Module&);

/// The text, of PTX 9.0 where it was of an earlier one.
std::string raised(std::string text, const ptx::Module&);

}  // namespace assay::watch
