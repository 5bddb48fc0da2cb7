#include "src/case/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "src/base/numerics/bad_input.h"
#include "src/case/names.h"

namespace assay {
namespace {

bool is_heads(const Axis& axis) {
  return axis.name == "H" || axis.name == "HV" || axis.name == "HQ";
}

/// Index of axis T; the number of axes where there is none.
size_t place_of_tokens(const std::vector<Axis>& axes) {
  const auto t = std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.name == "T"; });
  return static_cast<size_t>(t - axes.begin());
}

int64_t elements_from(const std::vector<Axis>& axes, size_t first) {
  int64_t n = 1;
  for (size_t i = first; i < axes.size(); ++i) n *= axes[i].size;
  return n;
}

std::vector<size_t> in_order(const std::vector<Axis>& axes) {
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

/// Without gaps, the axes in memory in this order, outermost first.
TensorLayout permuted(const std::vector<Axis>& axes, const std::vector<size_t>& order) {
  TensorLayout layout{{}, std::vector<int64_t>(axes.size()), 0, 1};
  for (const Axis& axis : axes) layout.sizes.push_back(axis.size);
  for (size_t i = order.size(); i-- > 0;) {
    layout.strides[order[i]] = layout.elements;
    layout.elements *= axes[order[i]].size;
  }
  return layout;
}

/// In order, with `stride` elements from one index of `axis` to the next; the first element at `offset`.
TensorLayout widened(const std::vector<Axis>& axes, size_t axis, int64_t stride, int64_t offset) {
  TensorLayout layout = permuted(axes, in_order(axes));
  layout.strides[axis] = stride;
  for (size_t i = axis; i-- > 0;) layout.strides[i] = layout.strides[i + 1] * axes[i + 1].size;
  layout.offset = offset;
  layout.elements = layout.strides[0] * axes[0].size;
  return layout;
}

std::vector<int64_t> parse_strides(std::string_view text, std::string_view entry) {
  std::vector<int64_t> strides;
  for (size_t begin = 0; begin <= text.size();) {
    const std::string_view part = text.substr(begin, text.find(':', begin) - begin);
    begin += part.size() + 1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), strides.emplace_back());
    if (error != std::errc() || end != part.data() + part.size())
      throw BadInput(
          fmt::format("layout '{}': '{}' is not a stride; write them as q=4096:64:64:1", entry, part));
  }
  return strides;
}

const LayoutRow& find_layout(std::string_view name) {
  std::vector<std::string> names;
  for (const LayoutRow& row : layouts()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw BadInput(unknown_name("layout", name, names));
}

LayoutEntry parse_entry(std::string_view text) {
  LayoutEntry entry;
  const size_t equals = text.find('=');
  const std::string_view what = equals == text.npos ? text : text.substr(equals + 1);
  if (equals != text.npos) entry.input = text.substr(0, equals);
  if (equals == 0)
    throw BadInput(fmt::format("layout '{}': names no input; write it as q=heads-first", text));
  const bool numbers = what.find_first_not_of("-0123456789:") == what.npos && !what.empty();
  if (!numbers) {
    entry.row = &find_layout(what);
    return entry;
  }
  if (entry.input.empty())
    throw BadInput(
        fmt::format("layout '{}': strides are those of one input; write them as q=4096:64:64:1", text));
  entry.strides = parse_strides(what, text);
  return entry;
}

std::vector<Axis> axes_of(const Case& c, const ArgumentSpec& spec) {
  const Sizes sizes = sizes_of(c);
  std::vector<Axis> axes;
  for (const auto axis : spec.axes) axes.push_back({std::string(axis), sizes.of(axis)});
  return axes;
}

TensorLayout named_layout(const LayoutEntry& entry, const std::vector<Axis>& axes) {
  if (entry.row) {
    if (auto layout = entry.row->layout(axes)) return *layout;
    throw BadInput(fmt::format("layout {} of {}: needs {}", entry.row->name, entry.input, entry.row->needs));
  }
  if (const std::string fault = stride_fault(axes, entry.strides); !fault.empty())
    throw BadInput(fmt::format("strides of {}: {}", entry.input, fault));
  return layout_of_strides(axes, entry.strides);
}

std::optional<TensorLayout> layout_in(const std::vector<LayoutEntry>& entries, const ArgumentSpec& spec,
                                      const std::vector<Axis>& axes) {
  std::optional<TensorLayout> layout;
  for (const LayoutEntry& entry : entries) {
    if (entry.input == spec.name)
      layout = named_layout(entry, axes);
    else if (entry.input.empty() && !layout)
      layout = entry.row->layout(axes);
  }
  if (layout && layout->is_dense()) layout.reset();
  return layout;
}

}  // namespace

const std::vector<LayoutRow>& layouts() {
  static const std::vector<LayoutRow> table = {
#include "src/case/layouts.def"
  };
  return table;
}

std::vector<LayoutEntry> parse_layout(std::string_view text) {
  std::vector<LayoutEntry> entries;
  for (size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::string_view part = text.substr(begin, text.find(',', begin) - begin);
    begin += part.size() + 1;
    LayoutEntry entry = parse_entry(part);
    for (const LayoutEntry& known : entries)
      if (known.input == entry.input)
        throw BadInput(fmt::format("layout '{}': {} is given two", text,
                                   entry.input.empty() ? "every input" : entry.input));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string layout_text(const std::vector<LayoutEntry>& entries) {
  std::vector<std::string> parts;
  for (const LayoutEntry& entry : entries)
    parts.push_back(
        (entry.input.empty() ? "" : entry.input + "=") +
        (entry.row ? std::string(entry.row->name) : fmt::format("{}", fmt::join(entry.strides, ":"))));
  return fmt::format("{}", fmt::join(parts, ","));
}

void validate_layout(const Case& c, const Operator& op) {
  resolve_unchecked(c, op);
}

void lay_out(ResolvedCase& r) {
  if (r.case_.layout.empty()) return;
  const std::vector<LayoutEntry> entries = parse_layout(r.case_.layout);
  const std::vector<ArgumentSpec> specs = inputs_of(r.case_, *r.op);  // absent ones may be named
  std::vector<std::string> names;
  for (const ArgumentSpec& spec : specs) names.emplace_back(spec.name);
  for (const LayoutEntry& entry : entries)
    if (!entry.input.empty() && std::find(names.begin(), names.end(), entry.input) == names.end())
      throw BadInput("layout: " + unknown_name(fmt::format("input of {}", r.op->name), entry.input, names));
  for (const ArgumentSpec& spec : specs) layout_in(entries, spec, axes_of(r.case_, spec));
  for (SizedArgument& input : r.inputs) input.layout = layout_in(entries, input.spec, input.shape.axes);
  if (!r.case_.blocks.empty())
    throw BadInput(
        "layout and blocks: views are copied row by row before the kernel runs, by all blocks; leave one "
        "out");
}

}  // namespace assay
