#include "src/case/output_element.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay {

std::pair<std::string, int64_t> parse_element(const std::string& text, const Case& c, const Operator& op) {
  const std::string form = "write it as o[0,16,0,3]";
  const size_t open = text.find('[');
  if (open == std::string::npos || !text.ends_with(']'))
    throw BadInput(fmt::format("element '{}': {}", text, form));
  const std::string name = text.substr(0, open);
  std::vector<std::string> outputs;
  const std::vector<ArgumentSpec> specs = outputs_of(c, op);
  for (const ArgumentSpec& output : specs) outputs.emplace_back(output.name);
  const auto found = std::find(outputs.begin(), outputs.end(), name);
  if (found == outputs.end())
    throw BadInput(unknown_name(fmt::format("output of {}", op.name), name, outputs));
  const ArgumentSpec& spec = specs[static_cast<size_t>(found - outputs.begin())];
  const Sizes sizes = sizes_of(c);
  std::string_view rest = std::string_view(text).substr(open + 1, text.size() - open - 2);
  int64_t flat = 0;
  for (const auto axis : spec.axes) {
    std::string_view part = rest.substr(0, rest.find(','));
    rest = rest.substr(std::min(part.size() + 1, rest.size()));
    if (const size_t equals = part.find('='); equals != std::string_view::npos)
      part = part.substr(equals + 1);
    int64_t index = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error != std::errc() || end != part.data() + part.size() || index < 0 || index >= sizes.of(axis)) {
      throw BadInput(
          fmt::format("element '{}': {} = '{}' is not below {}; {}", text, axis, part, sizes.of(axis), form));
    }
    flat = flat * sizes.of(axis) + index;
  }
  if (!rest.empty())
    throw BadInput(fmt::format("element '{}': {} has {} axes; {}", text, name, spec.axes.size(), form));
  return {name, flat};
}

}  // namespace assay
