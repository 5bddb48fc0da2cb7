#include "src/case/override.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

template <typename Number>
Number number(std::string_view text, const std::string& whole) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw BadInput(
        fmt::format("override '{}': '{}' is not a number; write it as g[0,16,0,3]=-90", whole, text));
  }
  return value;
}

}  // namespace

Override parse_override(const std::string& text) {
  const std::string_view view = text;
  const size_t open = view.find('['), close = view.find("]=");
  if (open == std::string::npos || open == 0 || close == std::string::npos || close < open) {
    throw BadInput(fmt::format("override '{}': write it as g[0,16,0,3]=-90", text));
  }
  Override result{std::string(view.substr(0, open)), {}, number<double>(view.substr(close + 2), text)};
  std::string_view rest = view.substr(open + 1, close - open - 1);
  while (true) {
    const size_t comma = rest.find(',');
    result.index.push_back(number<int64_t>(rest.substr(0, comma), text));
    if (comma == std::string_view::npos) return result;
    rest = rest.substr(comma + 1);
  }
}

void apply_override(const Override& change, TensorMap& inputs) {
  const auto found = inputs.find(change.argument);
  if (found == inputs.end()) {
    throw BadInput(fmt::format("override of {}: this case has no such input", change.argument));
  }
  Tensor& tensor = found->second;
  bool inside = change.index.size() == tensor.axes.size();
  for (size_t i = 0; inside && i < change.index.size(); ++i) {
    inside = change.index[i] >= 0 && change.index[i] < tensor.axes[i].size;
  }
  if (!inside) {
    throw BadInput(fmt::format("override of {}: no such element; {} is {}", change.argument, change.argument,
                               tensor.shape_text()));
  }
  if (!tensor.is_held())
    throw BadInput(fmt::format("override of {}: its elements are made on demand in a run of some blocks",
                               change.argument));
  tensor.set(tensor.offset(change.index), change.value);
}

}  // namespace assay
