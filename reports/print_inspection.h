// What tensors hold, for people: a function of the document alone.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "reports/console.h"

namespace assay {

/// `inspection`: as to_json(Inspection) writes it.
void print_inspection(const Console&, const nlohmann::json& inspection);

}  // namespace assay
