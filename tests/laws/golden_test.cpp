// Golden values, 30 digits each, lie inside every enclosure of every operator.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/operator.h"
#include "src/numerics/multiprecision.h"

namespace assay {
namespace {

using Exact = Mpfr<100>;
using nlohmann::json;

void flatten(const json& nested, std::vector<std::string>& out) {
  if (nested.is_string()) return out.push_back(nested.get<std::string>());
  for (const json& item : nested) flatten(item, out);
}

std::vector<std::string> flat(const json& nested) {
  std::vector<std::string> out;
  flatten(nested, out);
  return out;
}

struct GoldenCase {
  TensorMap inputs;
  Problem problem;
  bool scale_rounded = false;
};

void load(const json& c, const Operator& op, GoldenCase& out) {
  const auto shape = c["shapes"].at("v").get<std::vector<int64_t>>();
  Sizes& s = out.problem.sizes;
  s.B = s.N = shape[0], s.T = shape[1], s.H = s.HV = shape[2], s.V = shape[3];
  s.K = c["shapes"].at("k").get<std::vector<int64_t>>()[3];
  std::vector<ArgumentSpec> arguments = op.inputs;
  json given = c["inputs"];
  for (const ArgumentSpec& output : op.outputs) {
    given["d" + std::string(output.name)] = c["cotangents"].at("d" + std::string(output.name));
  }
  const auto add = [&](const std::string& name, const std::vector<std::string_view>& letters) {
    if (!given.contains(name)) return;
    std::vector<Axis> axes;
    for (std::string_view letter : letters) axes.push_back({std::string(letter), s.of(letter)});
    Tensor tensor(name, Dtype::fp64, axes);
    const auto values = flat(given[name]);
    ASSERT_EQ(static_cast<int64_t>(values.size()), tensor.size()) << name;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, std::stod(values[static_cast<size_t>(i)]));
      ASSERT_EQ(Exact(tensor.value(i)), Exact(values[static_cast<size_t>(i)])) << name << ": not a double";
    }
    out.inputs[name] = tensor;
  };
  for (const ArgumentSpec& a : op.inputs) add(std::string(a.name), a.axes);
  for (const ArgumentSpec& a : op.outputs) add("d" + std::string(a.name), a.axes);
  const std::string scale = c["params"]["scale"];
  out.problem.scale = c["params"]["scale_is_default"].get<bool>() ? op.default_scale(s) : std::stod(scale);
  out.scale_rounded = c["params"]["scale_is_default"].get<bool>();
  out.problem.inputs = &out.inputs;
}

/// |golden - mid| <= rad, where golden itself is rounded to 30 digits; where the scale is K^-1/2 rounded to a
/// double the exact value moves by 2^-53 of the companion.
void expect_inside(const ReferenceOutput& out, const json& golden, bool scale_rounded,
                   const std::string& where) {
  const auto values = flat(golden);
  ASSERT_EQ(values.size(), out.mid.size()) << where << " " << out.name;
  for (size_t i = 0; i < values.size(); ++i) {
    const Exact exact(values[i]);
    const Exact error = abs(exact - Exact(out.mid[i]));
    const Exact allowed = Exact(out.rad[i]) + abs(exact) * Exact("5e-30") +
                          (scale_rounded ? Exact(out.companion[i] * 0x1p-53) : Exact(0));
    EXPECT_LE(error, allowed) << where << " " << out.name << "[" << i << "] expected " << values[i] << " got "
                              << out.mid[i] << " +- " << out.rad[i];
    EXPECT_LE(out.rad[i], 1e-13 * out.companion[i] + 1e-200)
        << where << " " << out.name << "[" << i << "]: a vacuous enclosure";
  }
}

TEST(Golden, values_lie_inside_every_enclosure_of_every_operator) {
  const json file = json::parse(std::ifstream("tests/data/golden.json"));
  for (const Operator& op : operators()) {
    int cases = 0, compared = 0;
    for (const json& c : file["cases"]) {
      if (c["op"] != std::string(op.name)) continue;
      ++cases;
      const std::string where = std::string(op.name) + " case " + std::to_string(c["case"].get<int>());
      GoldenCase golden;
      load(c, op, golden);
      for (const auto& out : op.evaluate(golden.problem).outputs) {
        expect_inside(out, c["outputs"].at(out.name), golden.scale_rounded, where);
        ++compared;
      }
      for (const auto& out : op.evaluate_adjoint(golden.problem).outputs) {
        expect_inside(out, c["grads"].at(out.name), golden.scale_rounded, where);
        ++compared;
      }
    }
    EXPECT_GE(cases, 3) << op.name;
    EXPECT_GE(compared, 6 * cases) << op.name;
  }
}

}  // namespace
}  // namespace assay
