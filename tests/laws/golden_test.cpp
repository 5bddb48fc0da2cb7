// Golden values, 30 digits each, lie inside every enclosure of every operator.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/operator.h"
#include "src/base/numerics/multiprecision.h"

namespace assay {
namespace golden_test {

using Exact = Mpfr<100>;
using nlohmann::json;

constexpr const char* kRecorded = "tests/data";

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

/// Golden names of what is an option of an operator here.
std::string operator_of(const std::string& golden) {
  return golden == "simple_gla_gamma" ? "simple_gla" : golden;
}

/// Binds the axes' letters to the sizes that the file gives.
Sizes sizes_of(const json& c, const Operator& op) {
  Sizes s;
  const std::pair<const char*, int64_t Sizes::*> letters[] = {
      {"B", &Sizes::B}, {"T", &Sizes::T}, {"H", &Sizes::H}, {"HV", &Sizes::HV}, {"HQ", &Sizes::HV},
      {"K", &Sizes::K}, {"V", &Sizes::V}, {"D", &Sizes::V}, {"M", &Sizes::M}};
  for (const ArgumentSpec& a : op.inputs) {
    const std::string name(a.name);
    if (!c["shapes"].contains(name)) continue;
    const auto shape = c["shapes"].at(name).get<std::vector<int64_t>>();
    for (size_t i = 0; i < shape.size() && shape.size() == a.axes.size(); ++i)
      for (const auto& [letter, member] : letters)
        if (a.axes[i] == letter) s.*member = shape[i];
  }
  s.HV = std::max(s.HV, s.H), s.N = s.B;
  return s;
}

void load(const json& c, const Operator& op, GoldenCase& out) {
  out.problem.sizes = sizes_of(c, op);
  const Sizes& s = out.problem.sizes;
  for (const ParameterSpec& parameter : op.parameters)
    if (c["params"].contains(parameter.name))
      out.problem.parameters[std::string(parameter.name)] = c["params"].at(parameter.name).get<double>();
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

using Evaluate = ReferenceResult (*)(const Problem&);

/// What a scale that is K^-1/2 rounded to a double may do to an exact value: 2^-53 of the companion, or,
/// where companions are no sums of absolute terms, what its neighbours do to a value that is affine in it.
std::vector<double> moved_by_rounded_scale(const Operator& op, Evaluate evaluate, const Problem& given,
                                           size_t output, const ReferenceOutput& out) {
  std::vector<double> moved;
  if (op.bound_shape != BoundShape::norms) {
    for (double companion : out.companion) moved.push_back(companion * 0x1p-53);
    return moved;
  }
  Problem p = given;
  moved.assign(out.mid.size(), 0);
  for (double towards : {0.0, 2.0}) {
    p.scale = std::nextafter(given.scale, towards);
    const ReferenceOutput there = evaluate(p).outputs[output];
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] = std::fmax(moved[i], std::fabs(there.mid[i] - out.mid[i]) + there.rad[i] + out.rad[i]);
  }
  return moved;
}

/// |golden - mid| <= rad + moved, where golden itself is rounded to 30 digits.
void expect_inside(const ReferenceOutput& out, const json& golden, const std::vector<double>& moved,
                   const std::string& where) {
  const auto values = flat(golden);
  ASSERT_EQ(values.size(), out.mid.size()) << where << " " << out.name;
  for (size_t i = 0; i < values.size(); ++i) {
    const Exact exact(values[i]);
    const Exact error = abs(exact - Exact(out.mid[i]));
    const Exact allowed = Exact(out.rad[i]) + abs(exact) * Exact("5e-30") + Exact(moved[i]);
    EXPECT_LE(error, allowed) << where << " " << out.name << "[" << i << "] expected " << values[i] << " got "
                              << out.mid[i] << " +- " << out.rad[i];
    EXPECT_LE(out.rad[i], 1e-13 * out.companion[i] + 1e-200)
        << where << " " << out.name << "[" << i << "]: a vacuous enclosure";
  }
}

/// The cases of every file golden*.json.
json recorded_cases() {
  json all = json::array();
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(kRecorded, missing)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("golden") || !name.ends_with(".json")) continue;
    const json file = json::parse(std::ifstream(entry.path()));
    for (const json& c : file.at("cases")) all.push_back(c);
  }
  return all;
}

TEST(Golden, values_lie_inside_every_enclosure_of_every_operator) {
  const json all = recorded_cases();
  ASSERT_FALSE(all.empty()) << "no " << kRecorded << "/golden*.json: run from the root of the sources";
  for (const Operator& op : operators()) {
    size_t cases = 0, compared = 0;
    for (const json& c : all) {
      if (operator_of(c["op"]) != op.name) continue;
      ++cases;
      const std::string where = c["op"].get<std::string>() + " case " + std::to_string(c["case"].get<int>());
      GoldenCase golden;
      load(c, op, golden);
      for (const auto& [evaluate, kind] :
           {std::pair{op.evaluate, "outputs"}, {op.evaluate_adjoint, "grads"}}) {
        const ReferenceResult result = evaluate(golden.problem);
        for (size_t o = 0; o < result.outputs.size(); ++o, ++compared) {
          const ReferenceOutput& out = result.outputs[o];
          std::vector<double> moved(out.mid.size(), 0);
          if (golden.scale_rounded) moved = moved_by_rounded_scale(op, evaluate, golden.problem, o, out);
          expect_inside(out, c[kind].at(out.name), moved, where);
        }
      }
    }
    EXPECT_GE(cases, 3) << op.name << ": " << kRecorded << " has too few golden cases of it";
    EXPECT_GE(compared, op.inputs.size() * cases) << op.name;
  }
}

}  // namespace golden_test
}  // namespace assay
