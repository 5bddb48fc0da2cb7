#include "src/cli/tensor_names.h"

#include <fmt/format.h>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay::cli {

TensorMap renamed(TensorMap tensors, const std::vector<std::string>& map, const std::string& source) {
  TensorMap result;
  for (const std::string& pair : map) {
    const size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0 || equals + 1 == pair.size())
      throw BadInput(fmt::format("--map {}: write it as q=query_states", pair));
    const std::string input = pair.substr(0, equals), name = pair.substr(equals + 1);
    auto found = tensors.extract(name);
    if (!found) {
      std::vector<std::string> names;
      for (const auto& [known, tensor] : tensors) names.push_back(known);
      throw BadInput("--map: " + unknown_name("tensor of " + source, name, names));
    }
    found.key() = input;
    if (!result.insert(std::move(found)).inserted)
      throw BadInput(fmt::format("--map {}: {} is given two tensors", pair, input));
  }
  for (auto& [name, tensor] : tensors)
    if (!result.emplace(name, std::move(tensor)).second)
      throw BadInput(fmt::format("--map: {} has a tensor {} of its own; leave one out", source, name));
  return result;
}

}  // namespace assay::cli
