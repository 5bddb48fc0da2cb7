#include "src/capsule/launch_tensors.h"

#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "src/base/tensor/tensor_file.h"
#include "src/case/random.h"

namespace assay {
namespace {

double number_at(const JsonNode& node, const ExpressionScope& scope) {
  return evaluate(node.expression(), scope, node.place());
}
int64_t whole_at(const JsonNode& node, const ExpressionScope& scope, int64_t low, int64_t high) {
  return evaluate_integer(node.expression(), scope, node.place(), low, high);
}

/// A size that is a name gives the axis its name; others are counted.
std::vector<Axis> read_shape(const JsonNode& node, const ExpressionScope& scope) {
  std::vector<Axis> axes;
  std::set<std::string> taken;
  for (const JsonNode& item : node.items()) {
    const std::string text = item.expression();
    const bool is_name = scope.variables.contains(text);
    std::string name = is_name ? text : fmt::format("i{}", axes.size());
    while (!taken.insert(name).second) name += "'";
    axes.push_back({name, whole_at(item, scope, 0, most_launch_elements)});
  }
  return axes;
}

using Draw = std::function<double(const RandomStream&, int64_t)>;

/// How values are drawn; `range` where they are random.
struct DrawnValues {
  Draw draw;
  std::optional<DrawnRange> range;
};

const DrawnValues* named_draw(const std::string& name) {
  static const std::map<std::string, DrawnValues> kDraws{
      {"normal",
       {[](const RandomStream& random, int64_t i) {
          return random.normal({0, i});
        },
        DrawnRange{}}},
      {"positive",
       {[](const RandomStream& random, int64_t i) {
          return std::fabs(random.normal({0, i}));
        },
        DrawnRange{.positive = true}}},
      {"uniform",
       {[](const RandomStream& random, int64_t i) {
          return 2 * random.uniform({0, i}) - 1;
        },
        DrawnRange{true, -1, 1, false}}},
      {"zeros", {[](const RandomStream&, int64_t) { return 0.0; }, {}}},
      {"ones", {[](const RandomStream&, int64_t) { return 1.0; }, {}}},
      {"range", {[](const RandomStream&, int64_t i) { return static_cast<double>(i); }, {}}},
  };
  const auto found = kDraws.find(name);
  return found == kDraws.end() ? nullptr : &found->second;
}

constexpr const char* kValueForms =
    "write \"normal\", \"positive\", \"uniform\", \"zeros\", \"ones\", \"range\", \"permutation\", a list, "
    "or "
    "one of {\"normal\": [mean, deviation]}, {\"uniform\": [from, to]}, {\"integers\": [from, to]}, "
    "{\"range\": [start, step]}, {\"fill\": x}, {\"npy\": FILE}, {\"file\": FILE, \"name\": TENSOR}";

/// {"normal": [0, 2]} and its like.
DrawnValues drawn_between(const JsonNode& node, const ExpressionScope& scope) {
  node.keys({"normal", "uniform", "integers", "range", "fill"});
  if (node.size() != 1) node.fail(std::string("says more than one thing; ") + kValueForms);
  if (node.has("fill")) {
    const double x = number_at(node.get("fill", ""), scope);
    return {[x](const RandomStream&, int64_t) { return x; }, {}};
  }
  const auto [kind, pair] = node.members().front();
  const auto both = pair.items(2);
  if (both.size() != 2) pair.fail("expected two numbers");
  const double a = number_at(both[0], scope), b = number_at(both[1], scope);
  if (kind == "normal")
    return {[a, b](const RandomStream& random, int64_t i) {
              return a + b * random.normal({0, i});
            },
            DrawnRange{}};
  if (kind == "range")
    return {[a, b](const RandomStream&, int64_t i) { return a + b * static_cast<double>(i); }, {}};
  if (b < a) pair.fail(fmt::format("{} to {} is empty", a, b));
  if (kind == "uniform")
    return {[a, b](const RandomStream& random, int64_t i) {
              return a + (b - a) * random.uniform({0, i});
            },
            DrawnRange{true, a, b, false}};
  const auto low = static_cast<int64_t>(std::ceil(a)), high = static_cast<int64_t>(std::floor(b));
  if (high < low) pair.fail(fmt::format("no whole number lies between {} and {}", a, b));
  return {[low, high](const RandomStream& random, int64_t i) {
            return static_cast<double>(low + random.below(high - low + 1, {0, i}));
          },
          DrawnRange{true, static_cast<double>(low), static_cast<double>(high), false}};
}

/// Drawn one by one.
class DrawnElements : public TensorSource {
 public:
  DrawnElements(Draw draw, RandomStream random, Dtype dtype)
      : draw_(std::move(draw)), random_(random), dtype_(dtype) {}
  uint64_t bits(int64_t flat) const override {
    const int unused = 64 - 8 * format(dtype_).bytes;
    return encode(dtype_, draw_(random_, flat)) << unused >> unused;
  }

 private:
  Draw draw_;
  RandomStream random_;
  Dtype dtype_;
};

/// Makes room for its elements, unless they are to be drawn one by one.
void fill(LaunchTensor& made, const DrawnValues& values, uint64_t seed, bool large_stay) {
  Tensor& tensor = made.tensor;
  const RandomStream random(seed, tensor.name);
  made.drawn = values.range;
  if (large_stay && tensor.bytes() > kLargestHeld) {
    tensor.source = std::make_shared<DrawnElements>(values.draw, random, tensor.dtype);
    return;
  }
  tensor = Tensor(tensor.name, tensor.dtype, tensor.axes);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, values.draw(random, i));
}

/// Fisher and Yates.
void permute(Tensor& tensor, uint64_t seed) {
  tensor = Tensor(tensor.name, tensor.dtype, tensor.axes);
  const RandomStream random(seed, tensor.name);
  std::vector<int64_t> order(static_cast<size_t>(tensor.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = tensor.size() - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1, {0, i}))]);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, static_cast<double>(order[static_cast<size_t>(i)]));
}

Tensor read_stored(const JsonNode& node, const LaunchFolder& folder, bool large_stay) {
  node.keys({"npy", "file", "name"});
  if (node.has("npy")) return folder.read_npy(node.get("npy", "").text(), large_stay);
  const std::string file = node.get("file", "").text();
  TensorMap tensors = folder.read_tensors(file, large_stay);
  const std::string name = node.get("name", "which tensor of the file").text();
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    std::string known;
    for (const auto& [other, tensor] : tensors) known += (known.empty() ? "" : ", ") + other;
    node.fail(fmt::format("{} has no tensor \"{}\"; it has: {}", folder.path_of(file), name, known));
  }
  return std::move(found->second);
}

/// Values from a file bring their shape and type along; where the document says them too, they must agree.
void take_stored(LaunchTensor& made, const JsonNode& values, const JsonNode& whole, Tensor stored) {
  Tensor& tensor = made.tensor;
  // Integers of a size are the same bytes, of either sign; floats are not, nor are they integers' bits.
  const bool same = tensor.dtype == stored.dtype;
  if (whole.has("dtype") && !same)
    values.fail(fmt::format("the file holds {}, the document says {}", format(stored.dtype).name,
                            format(tensor.dtype).name));
  if (!whole.has("dtype")) tensor.dtype = stored.dtype;
  if (whole.has("shape")) {
    if (stored.size() != tensor.size())
      values.fail(fmt::format("the file holds {} elements, the shape {} has {}", stored.size(),
                              tensor.shape_text(), tensor.size()));
  } else {
    tensor.axes = stored.axes;
    for (size_t i = 0; i < tensor.axes.size(); ++i)
      if (tensor.axes[i].name.empty()) tensor.axes[i].name = fmt::format("i{}", i);
  }
  tensor.data = std::move(stored.data), tensor.source = std::move(stored.source);
}

void read_values(LaunchTensor& made, const JsonNode& values, const JsonNode& whole,
                 const ExpressionScope& scope, const LaunchFolder& folder, uint64_t seed, bool large_stay) {
  Tensor& tensor = made.tensor;
  made.holds = true;
  if (values.is_object() && (values.has("npy") || values.has("file")))
    return take_stored(made, values, whole, read_stored(values, folder, large_stay));
  if (!whole.has("shape")) whole.fail("key \"shape\" is missing: sizes of the axes, as expressions");
  if (values.is_string() && values.text() == "permutation") return permute(tensor, seed);
  if (values.is_string()) {
    const DrawnValues* const draw = named_draw(values.text());
    if (!draw) values.fail(fmt::format("\"{}\" are no values; {}", values.text(), kValueForms));
    return fill(made, *draw, seed, large_stay);
  }
  if (values.is_array()) {
    const auto items = values.items();
    if (static_cast<int64_t>(items.size()) != tensor.size())
      values.fail(fmt::format("{} values for {} elements", items.size(), tensor.size()));
    tensor = Tensor(tensor.name, tensor.dtype, tensor.axes);
    for (size_t i = 0; i < items.size(); ++i) tensor.set(static_cast<int64_t>(i), number_at(items[i], scope));
    return;
  }
  if (!values.is_object()) values.fail(kValueForms);
  fill(made, drawn_between(values, scope), seed, large_stay);
}

void read_layout(LaunchTensor& made, const JsonNode& node, const ExpressionScope& scope) {
  std::vector<int64_t> strides;
  for (const JsonNode& item : node.items()) strides.push_back(whole_at(item, scope, 0, most_launch_elements));
  if (strides.size() != made.tensor.axes.size())
    node.fail(fmt::format("{} strides for {} axes", strides.size(), made.tensor.axes.size()));
  if (const std::string fault = stride_fault(made.tensor.axes, strides); !fault.empty()) node.fail(fault);
  made.layout = layout_of_strides(made.tensor.axes, strides);
}

}  // namespace

int64_t most_launch_elements = int64_t{1} << 33;

Dtype dtype_of(const JsonNode& node) {
  static constexpr std::pair<const char*, Dtype> kNames[] = {
      {"float64", Dtype::fp64}, {"double", Dtype::fp64},   {"f64", Dtype::fp64},     {"float32", Dtype::fp32},
      {"float", Dtype::fp32},   {"f32", Dtype::fp32},      {"float16", Dtype::fp16}, {"half", Dtype::fp16},
      {"f16", Dtype::fp16},     {"bfloat16", Dtype::bf16}, {"int32", Dtype::i32},    {"uint32", Dtype::i32},
      {"s32", Dtype::i32},      {"u32", Dtype::i32},       {"b32", Dtype::i32},      {"int64", Dtype::i64},
      {"uint64", Dtype::i64},   {"s64", Dtype::i64},       {"u64", Dtype::i64},      {"b64", Dtype::i64},
      {"int8", Dtype::u8},      {"uint8", Dtype::u8},      {"s8", Dtype::u8},        {"b8", Dtype::u8},
      {"i8", Dtype::u8},        {"bool", Dtype::u8},       {"e4m3", Dtype::u8},      {"e5m2", Dtype::u8}};
  const std::string name = node.text();
  for (const auto& [known, dtype] : kNames)
    if (name == known) return dtype;
  for (const Format& f : formats())
    if (name == f.name) return f.dtype;
  node.fail(
      fmt::format("\"{}\" is no type of elements; there are fp64, fp32, tf32, fp16, bf16, i64, i32, u8 (and "
                  "PyTorch's and PTX's names of them)",
                  name));
}

LaunchTensor read_launch_tensor(const std::string& name, const JsonNode& node, const ExpressionScope& scope,
                                const LaunchFolder& folder, uint64_t seed, bool large_stay) {
  node.keys({"dtype", "shape", "values", "use", "partly", "strides", "in", "offset", "variable"});
  LaunchTensor made;
  made.tensor.name = name;
  if (node.has("dtype")) made.tensor.dtype = dtype_of(node.get("dtype", ""));
  if (node.has("shape")) made.tensor.axes = read_shape(node.get("shape", ""), scope);
  double elements = 1;
  for (const Axis& axis : made.tensor.axes) elements *= static_cast<double>(axis.size);
  if (elements > static_cast<double>(most_launch_elements))
    node.fail(fmt::format("{:.3g} elements; at most {} are possible", elements, most_launch_elements));
  if (node.has("values")) {
    read_values(made, node.get("values", ""), node, scope, folder, seed, large_stay);
  } else {
    node.get("dtype", "the type of its elements, such as \"bf16\"");
    node.get("shape", "sizes of the axes, as expressions");
  }
  static constexpr std::pair<const char*, LaunchTensor::Use> kUses[] = {
      {"in", LaunchTensor::Use::in},
      {"in_out", LaunchTensor::Use::in_out},
      {"out", LaunchTensor::Use::out},
      {"workspace", LaunchTensor::Use::workspace}};
  made.use = made.holds ? LaunchTensor::Use::in : LaunchTensor::Use::out;
  if (node.has("use")) {
    const JsonNode use = node.get("use", "");
    bool known = false;
    for (const auto& [text, which] : kUses)
      if (use.text() == text) made.use = which, known = true;
    made.fixed = made.use == LaunchTensor::Use::in;
    if (!known) use.fail(fmt::format("\"{}\"; write in, in_out, out or workspace", use.text()));
    const bool takes = made.use == LaunchTensor::Use::in || made.use == LaunchTensor::Use::in_out;
    if (takes && !made.holds) use.fail("it has no \"values\" that it could bring in");
    if (made.use == LaunchTensor::Use::workspace && made.holds) use.fail("a workspace has no \"values\"");
  }
  if (node.has("partly")) made.partly = node.get("partly", "").boolean();
  if (node.has("strides")) {
    const JsonNode strides = node.get("strides", "");
    if (made.use != LaunchTensor::Use::in)
      strides.fail(
          "only what the run reads is a view; give what it writes the shape of its memory, and \"partly\": "
          "true where gaps stay unwritten");
    read_layout(made, strides, scope);
  }
  if (node.has("variable")) {
    const JsonNode variable = node.get("variable", "");
    made.variable = variable.text();
    if (node.has("in") || node.has("strides"))
      variable.fail("a module's variable is no part or view of others");
  }
  if (node.has("in")) made.storage = node.get("in", "").text();
  if (node.has("offset")) made.offset = whole_at(node.get("offset", ""), scope, 0, int64_t{1} << 40);
  return made;
}

}  // namespace assay
