#include "kernels/plan_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace plan_document_test {

using nlohmann::json;

const char* kPlan = R"({
  "operator": "gla", "dtypes": ["bf16", "fp32"], "arithmetic": "fp32-recurrent",
  "workspaces": [{"name": "states", "bytes": "N * H * 4"}],
  "launches": [{"function": "f_{dtype}", "grid": ["H", "N"], "block": 64,
                "arguments": ["q", null, {"i32": "T"}, {"f32": 0.5},
                              {"pointer": "g", "offset": 16, "absent": "zeros"}]}],
  "backward_launches": [{"function": "b", "grid": 1, "block": 32, "arguments": ["do", "dq"]}, {"fill": "dq"}]
})";

/// The message of parsing kPlan after `patch` (RFC 6902).
std::string message_after(const json& patch) {
  try {
    parse_plan_document(json::parse(kPlan).patch(patch).dump(), "p.json");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PlanDocument, IsReadAsWritten) {
  const PlanDocument plan = parse_plan_document(kPlan, "p.json");
  EXPECT_EQ(plan.operator_name, "gla");
  EXPECT_EQ(plan.dtypes, (std::vector{Dtype::bf16, Dtype::fp32}));
  EXPECT_EQ(plan.gate_dtypes, std::vector{Dtype::fp32});
  EXPECT_EQ(plan.arithmetic_preset, "fp32-recurrent");
  ASSERT_EQ(plan.launches.size(), 1u);
  const LaunchEntry& launch = plan.launches[0];
  EXPECT_EQ(launch.grid, (std::array<std::string, 3>{"H", "N", "1"}));
  EXPECT_EQ(launch.block, (std::array<std::string, 3>{"64", "1", "1"}));
  ASSERT_EQ(launch.arguments.size(), 5u);
  using Kind = ArgumentEntry::Kind;
  const Kind kinds[] = {Kind::pointer, Kind::null, Kind::i32, Kind::f32, Kind::pointer};
  const char* expressions[] = {"0", "0", "T", "0.5", "16"};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(launch.arguments[i].kind, kinds[i]) << i;
    EXPECT_EQ(launch.arguments[i].expression, expressions[i]) << i;
    EXPECT_EQ(launch.arguments[i].zeros_when_absent, i == 4) << i;
  }
  ASSERT_EQ(plan.backward_launches.size(), 2u);
  EXPECT_EQ(plan.backward_launches[0].function, "b");
  EXPECT_EQ(plan.backward_launches[0].fill, "");
  EXPECT_EQ(plan.backward_launches[1].fill, "dq");
}

TEST(PlanDocument, KnowsTheTensorsOfStructsAndTensorMaps) {
  const PlanDocument plan = parse_plan_document(
      json::parse(kPlan)
          .patch(json::parse(R"([{"op": "replace", "path": "/launches/0/arguments/0", "value":
            {"struct": ["q", null, {"i32": "T"}, {"pointer": "g", "absent": "zeros"},
                        {"struct": [{"tensor_map": "initial_state", "absent": "zeros",
                                     "box": [1, 1, 16, 16]}]}]}}])"))
          .dump(),
      "p.json");
  const ArgumentEntry& argument = plan.launches.at(0).arguments.at(0);
  EXPECT_EQ(argument.kind, ArgumentEntry::Kind::composed);
  EXPECT_EQ(argument.tensors, (std::vector<std::string>{"q", "g", "initial_state"}));
  EXPECT_EQ(argument.given_zeros, (std::vector<std::string>{"g", "initial_state"}));
  EXPECT_TRUE(argument.names("q") && argument.wants_zeros("g"));
  EXPECT_FALSE(argument.names("k") || argument.wants_zeros("q"));
}

TEST(PlanDocument, MalformedIsRefusedWithFilePointerAndWhatToWrite) {
  struct Row {
    const char* patch;
    const char* message;  ///< a part of it
  };
  const Row rows[] = {
      {R"([{"op": "remove", "path": "/operator"}])", "p.json at /: key \"operator\" is missing"},
      {R"([{"op": "remove", "path": "/arithmetic"}])",
       "key \"arithmetic\" is missing: without a declared arithmetic"},
      {R"([{"op": "remove", "path": "/launches"}, {"op": "remove", "path": "/backward_launches"}])",
       "key \"launches\" is missing"},
      {R"([{"op": "replace", "path": "/launches", "value": []}])",
       "at /launches: expected at least 1 entries, got 0"},
      {R"([{"op": "replace", "path": "/launches", "value": {}}])",
       "at /launches: expected an array, got object"},
      {R"([{"op": "add", "path": "/launch", "value": 1}])", "unknown key \"launch\"; known here: "},
      {R"([{"op": "replace", "path": "/dtypes", "value": "bf16"}])",
       "at /dtypes: expected an array, got string"},
      {R"([{"op": "replace", "path": "/dtypes/1", "value": "fp8"}])",
       "at /dtypes/1: \"fp8\" is no tensor format"},
      {R"([{"op": "replace", "path": "/dtypes/1", "value": "i32"}])", "write bf16, fp16 or fp32"},
      {R"([{"op": "add", "path": "/limits", "value": {"K": 0}}])",
       "at /limits/K: expected a whole number from 1"},
      {R"([{"op": "add", "path": "/limits", "value": {"D": 64}}])", "at /limits: unknown key \"D\""},
      {R"([{"op": "add", "path": "/limits", "value": {"rate_max": 3}}])",
       "at /limits/rate_max: a rate above 0 and at most 2"},
      {R"([{"op": "add", "path": "/formula", "value": 0}])", "at /formula: expected true or false, got 0"},
      {R"([{"op": "add", "path": "/exponents_nonpositive", "value": 1}])", "expected true or false, got 1"},
      {R"([{"op": "remove", "path": "/workspaces/0/bytes"}])", "at /workspaces/0: key \"bytes\" is missing"},
      {R"([{"op": "remove", "path": "/launches/0/function"}])",
       "at /launches/0: key \"function\" is missing"},
      {R"([{"op": "add", "path": "/launches/0/grid/-", "value": [1]}])",
       "/launches/0/grid/2: expected a number or an"},
      {R"([{"op": "replace", "path": "/launches/0/grid", "value": [1, 1, 1, 1]}])",
       "at most 3 entries, got 4"},
      {R"([{"op": "replace", "path": "/launches/0/block", "value": true}])",
       "/launches/0/block: expected a number or"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/1", "value": 7}])",
       "/launches/0/arguments/1: expected an object"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/1", "value": {}}])",
       "key \"pointer\" is missing: an argument is"},
      {R"([{"op": "add", "path": "/launches/0/arguments/2/i64", "value": 1}])", "\"i32\" stands alone"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/2", "value": {"u32": 1}}])",
       "unknown key \"u32\""},
      {R"([{"op": "replace", "path": "/launches/0/arguments/4/absent", "value": "ones"}])",
       "/absent: \"ones\"; write"},
  };
  for (const Row& row : rows) {
    const std::string message = message_after(json::parse(row.patch));
    EXPECT_NE(message.find(row.message), std::string::npos) << row.patch << "\n  " << message;
    EXPECT_EQ(message.rfind("p.json", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(PlanDocument, ThatIsNotJsonIsRefusedWithLineAndColumn) {
  for (const char* text : {"", "{", "[1,", "{\"operator\": gla}", "\xff"}) {
    try {
      parse_plan_document(text, "p.json");
      ADD_FAILURE() << text;
    } catch (const BadInput& error) {
      EXPECT_EQ(std::string(error.what()).rfind("p.json: not JSON: parse error at line 1, column ", 0), 0u)
          << error.what();
    }
  }
  EXPECT_THROW(parse_plan_document("[]", "p.json"), BadInput);
  EXPECT_THROW(read_plan_document("no/such/plan.json"), BadInput);
}

/// The keys that the message for an unknown key lists.
std::set<std::string> keys_named(const std::string& message) {
  const std::string mark = "known here: ";
  std::set<std::string> keys;
  std::istringstream list(message.substr(message.find(mark) + mark.size()));
  for (std::string key; std::getline(list, key, ',');) keys.insert(key.substr(key.find_first_not_of(' ')));
  return keys;
}

std::set<std::string> keys_of(const json& properties) {
  std::set<std::string> keys;
  for (const auto& [key, value] : properties.items()) keys.insert(key);
  return keys;
}

TEST(PlanDocument, KnowsTheKeysOfItsSchemaAndNoOthers) {
  const json schema = json::parse(std::ifstream(ASSAY_SOURCE_DIR "/kernels/plan.schema.json"));
  const std::pair<const char*, const char*> rows[] = {
      {"", "/properties"},
      {"/limits", "/properties/limits/properties"},
      {"/workspaces/0", "/properties/workspaces/items/properties"},
      {"/launches/0", "/$defs/launches/items/oneOf/0/properties"},
      {"/backward_launches/0", "/$defs/launches/items/oneOf/0/properties"},
      {"/backward_launches/1", "/$defs/launches/items/oneOf/1/properties"},
      {"/launches/0/arguments/4", "/$defs/argument/oneOf/2/properties"},
  };
  for (const auto& [place, properties] : rows) {
    const json patch = {{{"op", "add"}, {"path", "/limits"}, {"value", json::object()}},
                        {{"op", "add"}, {"path", std::string(place) + "/no_such_key"}, {"value", 1}}};
    EXPECT_EQ(keys_named(message_after(patch)), keys_of(schema.at(json::json_pointer(properties)))) << place;
  }
}

}  // namespace plan_document_test
}  // namespace assay
