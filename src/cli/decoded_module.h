// What `assay decode` says of a PTX text, as JSON.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "src/base/ptx/program.h"

namespace assay::cli {

/// Target, entries with parameters, memory, forms and what is refused of them. `listing`: also every
/// function's instructions, with their signatures where `signatures` says so.
nlohmann::json decoded_module(const std::shared_ptr<const ptx::Module>&, bool listing, bool signatures);

}  // namespace assay::cli
