#include "src/base/tensor/element_text.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "src/base/numerics/bad_input.h"

namespace assay {

int64_t flat_element(const std::string& text, const std::vector<Axis>& axes) {
  const size_t open = text.find('[');
  std::string form;  // the last element
  for (const Axis& axis : axes) form += fmt::format("{}{}", form.empty() ? "" : ",", axis.size - 1);
  form = fmt::format("the last one is {}[{}]", text.substr(0, open), form);
  if (open == std::string::npos)
    throw BadInput(fmt::format("element '{}': no index in brackets follows the name; {}", text, form));
  if (!text.ends_with(']'))
    throw BadInput(fmt::format("element '{}': it does not end with ']'; {}", text, form));
  std::string_view rest = std::string_view(text).substr(open + 1, text.size() - open - 2);
  int64_t flat = 0;
  for (const Axis& axis : axes) {
    std::string_view part = rest.substr(0, rest.find(','));
    rest = rest.substr(std::min(part.size() + 1, rest.size()));
    if (const size_t equals = part.find('='); equals != std::string_view::npos)
      part = part.substr(equals + 1);
    int64_t index = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error != std::errc() || end != part.data() + part.size() || index < 0 || index >= axis.size) {
      throw BadInput(
          fmt::format("element '{}': {} = '{}' is not below {}; {}", text, axis.name, part, axis.size, form));
    }
    flat = flat * axis.size + index;
  }
  if (!rest.empty())
    throw BadInput(
        fmt::format("element '{}': {} has {} axes; {}", text, text.substr(0, open), axes.size(), form));
  return flat;
}

}  // namespace assay
