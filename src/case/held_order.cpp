#include "src/case/held_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "src/base/numerics/bad_input.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

using Letters = std::vector<std::string>;

/// One way to read a tensor's axes.
struct Order {
  Letters letters;                 ///< of the file's axes; "H*K" where two are merged
  const LayoutRow* row = nullptr;  ///< where the axes only change places
  bool merged = false;

  bool as_written() const { return !row && !merged; }
  std::string text() const { return merged ? "heads merged" : row ? std::string(row->name) : "dense"; }
};

/// A tensor, the ways to read it, and the one that is tried.
struct HeldTensor {
  const ArgumentSpec* spec;
  Tensor* tensor;
  std::vector<Order> orders;
  bool output = false;  ///< compared, not read by a kernel: no layout of the run
};

/// What a choice of orders means.
struct Reading {
  std::map<std::string, int64_t> sizes;
  std::vector<size_t> chosen;  ///< of each tensor's orders
};

const LayoutRow& order_row(std::string_view name) {
  return *std::find_if(layouts().begin(), layouts().end(),
                       [&](const LayoutRow& row) { return row.name == name; });
}

/// The axes as they lie in memory, the outermost first. None has size 1.
Letters letters_in_memory(const std::vector<Axis>& axes, const TensorLayout& layout) {
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  Letters letters;
  for (const size_t i : order) letters.push_back(axes[i].name);
  return letters;
}

Letters names_of(const std::vector<Axis>& axes) {
  Letters letters;
  for (const Axis& axis : axes) letters.push_back(axis.name);
  return letters;
}

/// As the row has the argument in memory; nothing where it lacks what the row needs.
std::optional<Order> held_axes(const ArgumentSpec& spec, const LayoutRow& row) {
  std::vector<Axis> axes;
  for (const auto axis : spec.axes) axes.push_back({std::string(axis), 2});
  const auto layout = row.layout(axes);
  if (!layout) return std::nullopt;
  return Order{letters_in_memory(axes, *layout), &row};
}

bool is_head_axis(std::string_view axis) {
  return axis == "H" || axis == "HV" || axis == "HQ";
}

std::optional<Order> merged(const ArgumentSpec& spec) {
  const size_t n = spec.axes.size();
  if (n < 3 || !is_head_axis(spec.axes[n - 2])) return std::nullopt;
  Order result{{spec.axes.begin(), spec.axes.end() - 2}, nullptr, true};
  result.letters.push_back(fmt::format("{}*{}", spec.axes[n - 2], spec.axes[n - 1]));
  return result;
}

/// The entry of the case's layout that speaks of this input.
const LayoutEntry* entry_of(const std::vector<LayoutEntry>& entries, std::string_view input) {
  const LayoutEntry* all = nullptr;
  for (const LayoutEntry& entry : entries) {
    if (entry.input == input) return &entry;
    if (entry.input.empty()) all = &entry;
  }
  return all;
}

/// Rows whose axes only change places can be how a file holds a tensor; the others say what lies between.
bool is_order(const LayoutRow* row) {
  return row && (row->name == "heads-first" || row->name == "transposed");
}

/// The order that the caller names first, then as written, then what is known besides.
std::vector<Order> orders_of(const ArgumentSpec& spec, const LayoutEntry* entry) {
  std::vector<Order> orders;
  if (entry && is_order(entry->row))
    if (auto named = held_axes(spec, *entry->row)) orders.push_back(*std::move(named));
  orders.push_back({{spec.axes.begin(), spec.axes.end()}});
  if (!entry)
    if (auto heads_first = held_axes(spec, order_row("heads-first")))
      orders.push_back(*std::move(heads_first));
  if (auto merge = merged(spec)) orders.push_back(*std::move(merge));
  return orders;
}

/// Whether the letter can have this size beside the others.
bool has_size(std::map<std::string, int64_t>& sizes, const std::string& letter, int64_t size) {
  return sizes.try_emplace(letter, size).first->second == size;
}

/// Sizes of merged axes from their product.
bool have_products(std::map<std::string, int64_t>& sizes) {
  const std::map<std::string, int64_t> products(sizes);
  for (size_t round = 0; round <= products.size(); ++round)
    for (const auto& [letter, size] : products) {
      const size_t times = letter.find('*');
      if (times == letter.npos) continue;
      const std::string a = letter.substr(0, times), b = letter.substr(times + 1);
      const auto known = sizes.contains(a) ? sizes.find(a) : sizes.find(b);
      if (known == sizes.end()) {
        if (round == products.size()) return false;
        continue;
      }
      if (known->second == 0 || size % known->second != 0) return false;
      if (!has_size(sizes, known->first == a ? b : a, size / known->second)) return false;
    }
  return true;
}

/// Adds every choice for the tensors from `next` on that gives each axis one size.
void read_on(const std::vector<HeldTensor>& tensors, size_t next, const Reading& so_far, bool packed,
             std::vector<Reading>& readings) {
  if (next == tensors.size()) {
    Reading whole = so_far;
    if (have_products(whole.sizes)) readings.push_back(std::move(whole));
    return;
  }
  const std::vector<Axis>& axes = tensors[next].tensor->axes;
  for (size_t o = 0; o < tensors[next].orders.size(); ++o) {
    const Letters& letters = tensors[next].orders[o].letters;
    if (letters.size() != axes.size()) continue;
    Reading more = so_far;
    more.chosen.push_back(o);
    bool fits = true;
    for (size_t i = 0; i < axes.size() && fits; ++i)
      fits = has_size(more.sizes, letters[i] == "N" && !packed ? "B" : letters[i], axes[i].size);
    if (fits) read_on(tensors, next + 1, more, packed, readings);
  }
}

/// Inputs by the order that they are read in, "k, v heads-first".
std::string orders_text(const std::vector<HeldTensor>& tensors, const Reading& reading) {
  std::map<std::string, std::vector<std::string_view>> named;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Order& order = tensors[i].orders[reading.chosen[i]];
    if (!order.as_written()) named[order.text()].push_back(tensors[i].spec->name);
  }
  std::vector<std::string> parts;
  for (const auto& [order, names] : named)
    parts.push_back(fmt::format("{} {}", fmt::join(names, ", "), order));
  return parts.empty() ? "all as [B,T,H,..]" : fmt::format("{}", fmt::join(parts, " and "));
}

int64_t size_of(const Reading& reading, const char* letter) {
  const auto found = reading.sizes.find(letter);
  return found == reading.sizes.end() ? 0 : found->second;
}

bool same_tokens_and_heads(const Reading& a, const Reading& b) {
  return size_of(a, "T") == size_of(b, "T") && size_of(a, "H") == size_of(b, "H");
}

/// `memory` holds a tensor's elements in the layout's places: they come back row by row.
std::vector<std::byte> dense_data(const Tensor& memory, const TensorLayout& layout) {
  const auto width = static_cast<size_t>(format(memory.dtype).bytes);
  std::vector<std::byte> data(memory.data.size());
  const int64_t size = memory.size();
  for (int64_t flat = 0; flat < size; ++flat)
    std::memcpy(data.data() + static_cast<size_t>(flat) * width,
                memory.data.data() + static_cast<size_t>(layout.position(flat)) * width, width);
  return data;
}

/// The tensor in the operator's order, its data as the row says that the file holds them.
void restore(HeldTensor& held, const Order& order, const Reading& reading) {
  Tensor& tensor = *held.tensor;
  std::vector<Axis> axes;
  for (const auto axis : held.spec->axes) {
    const auto n = reading.sizes.find(std::string(axis));
    axes.push_back({std::string(axis), n != reading.sizes.end() ? n->second : size_of(reading, "B")});
  }
  if (order.row) tensor.data = dense_data(tensor, *order.row->layout(axes));
  for (Axis& axis : axes) axis.name.clear();
  tensor.axes = std::move(axes);
}

void add_layout(Case& c, std::string_view input, const LayoutRow& row) {
  if (!c.blocks.empty()) return;  // views are copied by all blocks
  std::vector<LayoutEntry> entries = parse_layout(c.layout);
  const LayoutEntry* entry = entry_of(entries, input);
  if (entry && entry->row == &row) return;
  entries.push_back({std::string(input), &row, {}});
  c.layout = layout_text(entries);
}

std::string held_text(const Order& order, const std::vector<std::string_view>& names, bool outputs,
                      const std::string& source) {
  if (order.merged)
    return fmt::format("{}: heads merged with the channels ([{}]) in {}: taken apart", fmt::join(names, ", "),
                       fmt::join(order.letters, ","), source);
  return fmt::format("{}: {} ([{}]) in {}: {}", fmt::join(names, ", "), order.row->name,
                     fmt::join(order.letters, ","), source, outputs ? "read so" : "run in that layout");
}

/// Tensors that were found in one order.
struct FoundOrder {
  const Order* order;
  bool outputs;
  std::vector<std::string_view> names;
};

std::vector<std::string> take(Case& c, std::vector<HeldTensor>& tensors, const Reading& reading,
                              const std::string& source) {
  std::vector<FoundOrder> found;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Order& order = tensors[i].orders[reading.chosen[i]];
    if (order.as_written()) continue;
    restore(tensors[i], order, reading);
    if (order.row && !tensors[i].output) add_layout(c, tensors[i].spec->name, *order.row);
    const auto same = std::find_if(found.begin(), found.end(), [&](const FoundOrder& f) {
      return f.order->text() == order.text() && f.outputs == tensors[i].output;
    });
    if (same == found.end())
      found.push_back({&order, tensors[i].output, {tensors[i].spec->name}});
    else
      same->names.push_back(tensors[i].spec->name);
  }
  std::vector<std::string> lines;
  for (const FoundOrder& f : found) lines.push_back(held_text(*f.order, f.names, f.outputs, source));
  return lines;
}

/// The reading of those that differ in T and H, which the shapes leave open.
[[noreturn]] void ask(const std::vector<HeldTensor>& tensors, const Reading& a, const Reading& b,
                      const std::string& source) {
  throw BadInput(
      fmt::format("{}: its shapes can be T={}, H={} ({}) or T={}, H={} ({}); say which with -H {} or -H {}",
                  source, size_of(a, "T"), size_of(a, "H"), orders_text(tensors, a), size_of(b, "T"),
                  size_of(b, "H"), orders_text(tensors, b), size_of(a, "H"), size_of(b, "H")));
}

/// Does another reading of the same sizes put elements elsewhere? T = H.
bool look_alike(const Reading& first, const std::vector<Reading>& readings) {
  if (size_of(first, "H") <= 1) return false;
  return std::any_of(readings.begin(), readings.end(), [&](const Reading& other) {
    return other.sizes == first.sizes && other.chosen != first.chosen;
  });
}

std::string alike_text(const Reading& reading, const std::string& source) {
  return fmt::format("{}: T and H are both {}: [B,T,H,..] and [B,H,T,..] look alike; ", source,
                     size_of(reading, "T"));
}

/// Of tensors that fit as they are: a line where the other order gives the more usual T > H.
std::vector<std::string> other_order(const Reading& written, const std::vector<Reading>& readings,
                                     const std::string& source) {
  const int64_t T = size_of(written, "T"), H = size_of(written, "H");
  for (const Reading& other : readings)
    if (T < H && size_of(other, "T") == H && size_of(other, "H") == T)
      return {fmt::format("{}: read as T={}, H={}; if it holds [B,H,T,..], give --layout heads-first", source,
                          T, H)};
  return {};
}

/// Every way to read the tensors together.
std::vector<Reading> readings_of(const std::vector<HeldTensor>& tensors, const Case& c, int64_t heads) {
  Reading start;
  if (heads > 0) start.sizes["H"] = heads;
  if (!c.cu_seqlens.empty()) start.sizes["N"] = static_cast<int64_t>(c.cu_seqlens.size()) - 1;
  std::vector<Reading> readings;
  read_on(tensors, 0, start, !c.cu_seqlens.empty(), readings);
  return readings;
}

/// Takes what the case's layout says of outputs out of it: they have none in the run.
void forget_layouts(Case& c, const std::vector<HeldTensor>& tensors) {
  std::vector<LayoutEntry> entries = parse_layout(c.layout);
  std::erase_if(entries, [&](const LayoutEntry& entry) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const HeldTensor& t) { return t.output && t.spec->name == entry.input; });
  });
  c.layout = layout_text(entries);
}

}  // namespace

std::vector<std::string> take_order(Case& c, const std::vector<ArgumentSpec>& inputs,
                                    const std::vector<ArgumentSpec>& outputs, TensorMap& raw, int64_t heads,
                                    const std::string& source) {
  const std::vector<LayoutEntry> entries = parse_layout(c.layout);
  std::vector<HeldTensor> tensors;
  bool named = false;
  const auto hold = [&](const ArgumentSpec& spec, bool output) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) return;
    const LayoutEntry* entry = entry_of(entries, spec.name);
    named |= entry && entry->row && (is_order(entry->row) || entry->row->name == "dense");
    tensors.push_back({&spec, &found->second, orders_of(spec, entry), output});
  };
  for (const ArgumentSpec& spec : inputs) hold(spec, false);
  const size_t read = tensors.size();
  for (const ArgumentSpec& spec : outputs) hold(spec, true);
  const bool compared = tensors.size() > read;
  forget_layouts(c, tensors);
  std::vector<Reading> readings = readings_of(tensors, c, heads);
  if (readings.empty() && compared) {  // an output of another shape says nothing of the inputs
    tensors.resize(read);
    readings = readings_of(tensors, c, heads);
  }
  if (readings.empty()) return {};
  // The first: every tensor as the caller names it, or else as written, if that fits.
  const Reading& first = readings.front();
  if (named) return take(c, tensors, first, source);
  const bool alike = look_alike(first, readings);
  if (alike && !compared) throw BadInput(alike_text(first, source) + "give --layout dense or heads-first");
  if (alike) {
    std::vector<std::string> lines = take(c, tensors, first, source);
    lines.push_back(alike_text(first, source) + "read as [B,T,H,..], held against its outputs");
    return lines;
  }
  if (std::all_of(first.chosen.begin(), first.chosen.end(), [](size_t o) { return o == 0; }))
    return other_order(first, readings, source);
  for (const Reading& other : readings)
    if (!same_tokens_and_heads(first, other)) ask(tensors, first, other, source);
  return take(c, tensors, first, source);
}

std::string_view layout_of_exchange(const std::vector<Axis>& axes, size_t a, size_t b) {
  std::vector<Axis> exchanged = axes, told_apart = axes;
  std::swap(exchanged[a], exchanged[b]);
  for (Axis& axis : told_apart) axis.size = 2;
  for (const LayoutRow& row : layouts()) {
    if (!is_order(&row)) continue;
    const auto layout = row.layout(told_apart);
    if (layout && letters_in_memory(told_apart, *layout) == names_of(exchanged)) return row.name;
  }
  return "";
}

}  // namespace assay
