#include "src/binding/operations.h"

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay::binding {
namespace {

using nlohmann::json;

const Operation kOperations[] = {
    {"nothing", "does nothing", [](const Request&) { return json::object(); }},
};

}  // namespace

const Operation& operation_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Operation& operation : kOperations) {
    if (operation.name == name) return operation;
    names.emplace_back(operation.name);
  }
  throw BadInput(unknown_name("operation", name, names));
}

}  // namespace assay::binding
