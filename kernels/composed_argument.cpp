#include "kernels/composed_argument.h"

#include <nlohmann/json.hpp>

#include "src/base/document/json_node.h"
#include "src/capsule/launch_arguments.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

using nlohmann::json;

/// Its axes in the order that the plan lays them in.
Tensor as_laid(Tensor tensor, const ForeignKernel& foreign) {
  const auto order = foreign.orders.find(tensor.name);
  if (order == foreign.orders.end()) return tensor;
  std::vector<Axis> axes;
  for (const size_t axis : order->second) axes.push_back(tensor.axes[axis]);
  tensor.axes = std::move(axes);
  return tensor;
}

/// What an argument may name, without data: inputs (absent ones too, by the name of their zeros), results,
/// the offsets of packed sequences, and workspaces as their bytes.
std::map<std::string, Tensor> shapes_of(const ForeignKernel& foreign, const ResolvedCase& c,
                                        const ExpressionScope& scope) {
  std::map<std::string, Tensor> shapes;
  const auto add = [&](const ArgumentSpec& spec) {
    Tensor shape = as_laid(sized(spec, c.case_).shape, foreign);
    shape.name = std::string(spec.name);
    shapes.emplace(shape.name, std::move(shape));
  };
  for (const ArgumentSpec& spec : tensors_read(foreign.plan, *foreign.op)) add(spec);
  for (const ArgumentSpec& spec : tensors_written(foreign.plan, *foreign.op)) add(spec);
  const auto add_bytes = [&](const std::string& name, Dtype dtype, int64_t size) {
    Tensor shape;
    shape.name = name, shape.dtype = dtype, shape.axes = {{name, size}};
    shapes.emplace(name, std::move(shape));
  };
  add_bytes("cu_seqlens", Dtype::i64, std::ssize(c.case_.cu_seqlens));
  for (const WorkspaceEntry& workspace : foreign.plan.workspaces)
    add_bytes(workspace.name, Dtype::u8,
              evaluate_integer(workspace.bytes, scope, foreign.plan.at(workspace.where + "/bytes"), 0,
                               int64_t{1} << 50));
  return shapes;
}

/// Fills in what an absent tensor stands for: a null pointer, or the buffer of zeros that the plan asks for.
class Absence {
 public:
  Absence(const ForeignKernel& foreign, const ArgumentEntry& entry, const ResolvedCase& c,
          std::map<std::string, Tensor>& shapes)
      : foreign_(foreign), entry_(entry), c_(c), shapes_(shapes) {}

  void fill_in(json& node) const {
    if (node.is_string() && is_absent(node)) node = nullptr;
    if (!node.is_object()) return;
    const bool zeros = node.value("absent", "null") == "zeros";
    node.erase("absent");
    for (const char* key : {"pointer", "tensor_map"})
      if (node.contains(key) && node[key].is_string() && is_absent(node[key])) stand_in(node, key, zeros);
    if (node.contains("struct") && node["struct"].is_array())
      for (json& member : node["struct"]) fill_in(member);
  }

 private:
  bool is_absent(const std::string& name) const { return stands_absent(foreign_, name, c_); }
  void stand_in(json& node, const char* key, bool zeros) const {
    const std::string name = node[key];
    if (zeros) {
      shapes_.at(name).name = zeros_name(name);
    } else if (std::string_view(key) == "pointer") {
      node[key] = nullptr;
    } else {
      throw BadInput(fmt::format(
          "{}: {} is absent, and no tensor map is over nothing: write \"absent\": \"zeros\", or take no such "
          "case (\"accepts\": \"has_{}\")",
          foreign_.plan.at(entry_.where), name, name));
    }
  }

  const ForeignKernel& foreign_;
  const ArgumentEntry& entry_;
  const ResolvedCase& c_;
  std::map<std::string, Tensor>& shapes_;
};

}  // namespace

Argument composed_argument(const ForeignKernel& foreign, const ArgumentEntry& entry, const ResolvedCase& c,
                           const ExpressionScope& scope) {
  std::map<std::string, Tensor> shapes = shapes_of(foreign, c, scope);
  json written = json::parse(entry.expression);
  Absence(foreign, entry, c, shapes).fill_in(written);
  return read_launch_argument(JsonNode(written, entry.where, foreign.plan.path), scope, shapes);
}

}  // namespace assay
