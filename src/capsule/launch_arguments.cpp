#include "src/capsule/launch_arguments.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/numerics/format.h"

namespace assay {
namespace {

constexpr const char* kForms =
    "an argument is a tensor's name, null, {\"pointer\": tensor, \"offset\": bytes}, a scalar "
    "{\"i8\"|\"i16\"|\"i32\"|\"i64\"|\"f16\"|\"bf16\"|\"f32\"|\"f64\": expression}, {\"struct\": [members]}, "
    "{\"bytes\": hexadecimal digits} or {\"tensor_map\": tensor, \"box\": [..]}";

/// An argument and what C aligns it to inside a struct.
struct Member {
  Argument argument;
  size_t alignment = 1;
};

class ArgumentReader {
 public:
  ArgumentReader(const ExpressionScope& scope, const std::map<std::string, Tensor>& tensors)
      : scope_(scope), tensors_(tensors) {}

  Member read(const JsonNode& node) const {
    if (node.is_null()) return {Argument(PointerArgument{}), 8};
    if (node.is_string()) return pointer_to(node, 0);
    if (!node.is_object()) node.fail(kForms);
    for (const auto& [key, reader] : kKinds)
      if (node.has(key)) return (this->*reader)(node, key);
    node.fail(kForms);
  }

 private:
  using Reader = Member (ArgumentReader::*)(const JsonNode&, const char* key) const;

  const Tensor& tensor_named(const JsonNode& name) const {
    const auto found = tensors_.find(name.text());
    if (found != tensors_.end()) return found->second;
    std::string known;
    for (const auto& [other, tensor] : tensors_) known += (known.empty() ? "" : ", ") + other;
    name.fail(
        fmt::format("there is no tensor \"{}\"; there are: {}", name.text(), known.empty() ? "none" : known));
  }
  double number(const JsonNode& node) const { return evaluate(node.expression(), scope_, node.place()); }
  int64_t whole(const JsonNode& node, int64_t low, int64_t high) const {
    return evaluate_integer(node.expression(), scope_, node.place(), low, high);
  }

  Member pointer_to(const JsonNode& name, int64_t offset) const {
    return {Argument(PointerArgument{tensor_named(name).name, offset}), 8};
  }
  Member pointer(const JsonNode& node, const char*) const {
    node.keys({"pointer", "offset", "at"});
    const int64_t offset =
        node.has("offset") ? whole(node.get("offset", ""), -(int64_t{1} << 40), int64_t{1} << 40) : 0;
    const JsonNode name = node.get("pointer", "");
    if (name.is_null()) return {Argument(PointerArgument{}), 8};
    return pointer_to(name, offset);
  }

  template <typename T>
  Member integer(const JsonNode& node, const char* key) const {
    node.keys({key, "at"});
    // Of either sign: "i32" holds what a uint32_t holds.
    using Unsigned = std::make_unsigned_t<T>;
    const int64_t high = sizeof(T) == 8 ? std::numeric_limits<int64_t>::max()
                                        : static_cast<int64_t>(std::numeric_limits<Unsigned>::max());
    const int64_t value = whole(node.get(key, ""), std::numeric_limits<T>::min(), high);
    return {Argument(static_cast<T>(value)), sizeof(T)};
  }
  template <typename T>
  Member real(const JsonNode& node, const char* key) const {
    node.keys({key, "at"});
    const double value = number(node.get(key, ""));
    if constexpr (std::is_same_v<T, float>)
      if (std::isfinite(value)) return {Argument::rounded(value), sizeof(T)};
    return {Argument(static_cast<T>(value)), sizeof(T)};
  }
  template <Dtype dtype>
  Member half(const JsonNode& node, const char* key) const {
    node.keys({key, "at"});
    const auto bits = static_cast<uint16_t>(encode(dtype, number(node.get(key, ""))));
    return {Argument::of(bits), 2};
  }

  Member bytes(const JsonNode& node, const char*) const {
    node.keys({"bytes", "at"});
    const JsonNode text = node.get("bytes", "");
    std::string digits;
    for (const char c : text.text())
      if (c != ' ') digits += c;
    const bool even = digits.size() % 2 == 0;
    if (!even || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
      text.fail("expected pairs of hexadecimal digits");
    Argument made = Argument::of_bytes(digits.size() / 2);
    for (size_t i = 0; i < made.bytes.size(); ++i)
      made.bytes[i] = static_cast<std::byte>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    return {made, 1};
  }

  /// As C lays it out: every member at the next multiple of its alignment, the whole a multiple of the
  /// largest; "at" of a member and "size" of the whole say otherwise.
  Member structure(const JsonNode& node, const char*) const {
    node.keys({"struct", "size", "at"});
    Argument made;
    size_t alignment = 1;
    for (const JsonNode& item : node.get("struct", "").items(1)) {
      const Member member = read(item);
      size_t at = (made.bytes.size() + member.alignment - 1) / member.alignment * member.alignment;
      if (item.is_object() && item.has("at")) {
        const auto given = static_cast<size_t>(whole(item.get("at", ""), 0, 1 << 15));
        if (given < made.bytes.size())
          item.fail(fmt::format("byte {} is inside the member before it, which ends at {}", given,
                                made.bytes.size()));
        at = given;
      }
      append(made, member.argument, at);
      alignment = std::max(alignment, member.alignment);
    }
    size_t size = (made.bytes.size() + alignment - 1) / alignment * alignment;
    if (node.has("size")) size = static_cast<size_t>(whole(node.get("size", ""), 0, 1 << 15));
    if (size < made.bytes.size())
      node.fail(fmt::format("its members take {} bytes, \"size\" says {}", made.bytes.size(), size));
    leave_uncovered(made, size);
    return {made, alignment};
  }
  static void leave_uncovered(Argument& made, size_t until) {
    const size_t from = made.bytes.size();
    if (from < until) made.uncovered.push_back({static_cast<uint32_t>(from), static_cast<uint32_t>(until)});
    made.bytes.resize(until);
  }
  static void append(Argument& made, const Argument& member, size_t at) {
    leave_uncovered(made, at);
    for (const auto& [from, to] : member.uncovered)
      made.uncovered.push_back({from + static_cast<uint32_t>(at), to + static_cast<uint32_t>(at)});
    made.bytes.resize(at + member.bytes.size());
    std::copy(member.bytes.begin(), member.bytes.end(), made.bytes.begin() + static_cast<ptrdiff_t>(at));
    for (Relocation relocation : member.relocations) {
      relocation.at += static_cast<uint32_t>(at);
      made.relocations.push_back(std::move(relocation));
    }
  }

  /// Over the tensor as it lies, or over "shape" and "strides" (elements of the map) from byte "offset" on.
  Member tensor_map(const JsonNode& node, const char*) const {
    node.keys({"tensor_map", "element", "shape", "strides", "offset", "box", "steps", "swizzle", "interleave",
               "outside", "at"});
    const Tensor& tensor = tensor_named(node.get("tensor_map", ""));
    TileMap map;
    map.element =
        node.has("element") ? element_named(node.get("element", "")) : element_of(node, tensor.dtype);
    read_extents(map, node, tensor);
    const size_t axes = map.sizes.size();
    const auto box = node.get("box", "elements of a tile along each axis, in the order of the shape").items();
    if (box.size() != axes) node.fail(fmt::format("a box of {} axes over a tensor of {}", box.size(), axes));
    for (size_t i = axes; i-- > 0;) map.box.push_back(static_cast<uint32_t>(whole(box[i], 1, 256)));
    map.steps.assign(axes, 1);
    if (node.has("steps")) {
      const auto steps = node.get("steps", "").items();
      if (steps.size() != axes) node.fail("\"steps\" has one entry for each axis");
      for (size_t i = 0; i < axes; ++i)
        map.steps[axes - 1 - i] = static_cast<uint32_t>(whole(steps[i], 1, 8));
    }
    const int64_t swizzle = node.has("swizzle") ? whole(node.get("swizzle", ""), 0, 128) : 0;
    const int64_t interleave = node.has("interleave") ? whole(node.get("interleave", ""), 0, 32) : 0;
    map.swizzle = chosen<TileMap::Swizzle>(node, "swizzle", swizzle, {0, 32, 64, 128});
    map.interleave = chosen<TileMap::Interleave>(node, "interleave", interleave, {0, 16, 32});
    if (node.has("outside")) {
      const std::string text = node.get("outside", "").text();
      if (text != "zeros" && text != "nan") node.fail("\"outside\" is \"zeros\" or \"nan\"");
      map.outside = text == "nan" ? TileMap::Outside::nans : TileMap::Outside::zeros;
    }
    const int64_t offset = node.has("offset") ? whole(node.get("offset", ""), 0, int64_t{1} << 40) : 0;
    return {Argument::of(PointerArgument{tensor.name, offset}, map), TileMap::alignment};
  }
  /// Innermost first, strides in bytes, as a tensor map has them.
  void read_extents(TileMap& map, const JsonNode& node, const Tensor& tensor) const {
    const auto bytes = static_cast<uint64_t>(bytes_of(map.element));
    if (!node.has("shape")) {
      if (node.has("strides")) node.fail("\"strides\" go with a \"shape\"");
      for (size_t i = tensor.axes.size(); i-- > 0;) {
        map.sizes.push_back(static_cast<uint64_t>(tensor.axes[i].size));
        if (i > 0)
          map.strides.push_back((map.strides.empty() ? bytes : map.strides.back()) * map.sizes.back());
      }
      return;
    }
    const auto shape = node.get("shape", "").items(1);
    for (size_t i = shape.size(); i-- > 0;)
      map.sizes.push_back(static_cast<uint64_t>(whole(shape[i], 1, int64_t{1} << 32)));
    const auto strides =
        node.get("strides", "elements from one to the next of all axes but the last").items();
    if (strides.size() + 1 != shape.size())
      node.fail(
          fmt::format("{} strides for {} axes: one of each but the last", strides.size(), shape.size()));
    for (size_t i = strides.size(); i-- > 0;)
      map.strides.push_back(bytes * static_cast<uint64_t>(whole(strides[i], 0, int64_t{1} << 40)));
  }
  static constexpr std::pair<const char*, int> kElements[] = {
      {"u8", 1},  {"u16", 2}, {"u32", 4},  {"i32", 4},     {"u64", 8},  {"i64", 8},     {"f16", 2},
      {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f32_ftz", 4}, {"tf32", 4}, {"tf32_ftz", 4}};
  static int bytes_of(TileMap::Element element) { return kElements[static_cast<size_t>(element)].second; }
  static TileMap::Element element_named(const JsonNode& node) {
    std::string known;
    for (size_t i = 0; i < std::size(kElements); ++i) {
      if (node.text() == kElements[i].first) return static_cast<TileMap::Element>(i);
      known += (i ? ", " : "") + std::string(kElements[i].first);
    }
    node.fail(fmt::format("\"{}\" is no element of a tensor map; there are {}", node.text(), known));
  }
  template <typename E>
  static E chosen(const JsonNode& node, const char* key, int64_t value,
                  std::initializer_list<int64_t> legal) {
    uint8_t index = 0;
    for (const int64_t one : legal) {
      if (one == value) return static_cast<E>(index);
      ++index;
    }
    node.fail(fmt::format("\"{}\" of {} bytes; there are {}", key, value, fmt::join(legal, ", ")));
  }
  static TileMap::Element element_of(const JsonNode& node, Dtype dtype) {
    using Element = TileMap::Element;
    switch (dtype) {
      case Dtype::fp64:
        return Element::f64;
      case Dtype::fp32:
        return Element::f32;
      case Dtype::tf32:
        return Element::tf32;
      case Dtype::fp16:
        return Element::f16;
      case Dtype::bf16:
        return Element::bf16;
      case Dtype::i32:
        return Element::i32;
      case Dtype::i64:
        return Element::i64;
      case Dtype::u8:
        return Element::u8;
    }
    node.fail("no tensor map has such elements");
  }

  static constexpr std::pair<const char*, Reader> kKinds[] = {{"pointer", &ArgumentReader::pointer},
                                                              {"i8", &ArgumentReader::integer<int8_t>},
                                                              {"i16", &ArgumentReader::integer<int16_t>},
                                                              {"i32", &ArgumentReader::integer<int32_t>},
                                                              {"i64", &ArgumentReader::integer<int64_t>},
                                                              {"f16", &ArgumentReader::half<Dtype::fp16>},
                                                              {"bf16", &ArgumentReader::half<Dtype::bf16>},
                                                              {"f32", &ArgumentReader::real<float>},
                                                              {"f64", &ArgumentReader::real<double>},
                                                              {"struct", &ArgumentReader::structure},
                                                              {"bytes", &ArgumentReader::bytes},
                                                              {"tensor_map", &ArgumentReader::tensor_map}};

  const ExpressionScope& scope_;
  const std::map<std::string, Tensor>& tensors_;
};

}  // namespace

Argument read_launch_argument(const JsonNode& node, const ExpressionScope& scope,
                              const std::map<std::string, Tensor>& tensors) {
  return ArgumentReader(scope, tensors).read(node).argument;
}

}  // namespace assay
