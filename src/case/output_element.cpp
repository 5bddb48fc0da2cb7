#include "src/case/output_element.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/element_text.h"
#include "src/case/names.h"

namespace assay {

std::pair<std::string, int64_t> parse_element(const std::string& text, const Case& c, const Operator& op) {
  const size_t open = text.find('[');
  if (open == std::string::npos || !text.ends_with(']'))
    throw BadInput(fmt::format("element '{}': write it as o[0,16,0,3]", text));
  const std::string name = text.substr(0, open);
  std::vector<std::string> outputs;
  const std::vector<ArgumentSpec> specs = outputs_of(c, op);
  for (const ArgumentSpec& output : specs) outputs.emplace_back(output.name);
  const auto found = std::find(outputs.begin(), outputs.end(), name);
  if (found == outputs.end())
    throw BadInput(unknown_name(fmt::format("output of {}", op.name), name, outputs));
  const ArgumentSpec& spec = specs[static_cast<size_t>(found - outputs.begin())];
  const Sizes sizes = sizes_of(c);
  std::vector<Axis> axes;
  for (const auto axis : spec.axes) axes.push_back({std::string(axis), sizes.of(axis)});
  return {name, flat_element(text, axes)};
}

}  // namespace assay
