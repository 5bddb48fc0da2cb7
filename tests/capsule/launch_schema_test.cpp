// src/capsule/launch.schema.json says what the reader takes: every launch file of the tree goes through both,
// and they know the same keys.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/capsule/launch_file.h"
#include "tests/result/schema_check.h"

namespace assay {
namespace launch_schema_test {

using nlohmann::json;
namespace fs = std::filesystem;

json schema() {
  return json::parse(std::ifstream(ASSAY_SOURCE_DIR "/src/capsule/launch.schema.json"));
}

/// The document's launches by entries of these names, and PTX that has them; templates have none.
std::string with_entries(json& document) {
  std::string ptx = ".version 7.8\n.target sm_80\n.address_size 64\n.const .align 4 .b8 table[32];\n";
  for (json& step : document.at("launches")) {
    if (!step.contains("function")) continue;
    step["function"] = fmt::format("e{}", ptx.size());
    ptx += fmt::format(".visible .entry {}() {{ ret; }}\n", step["function"].get<std::string>());
  }
  return ptx;
}

/// The message of reading and making a document; empty where it is taken.
std::string complaint(json document) {
  const fs::path folder = fs::path(testing::TempDir()) / "launch_schema";
  fs::create_directories(folder);
  std::ofstream(folder / "k.ptx") << with_entries(document);
  std::ofstream(folder / "l.json") << document.dump();
  try {
    LaunchFile((folder / "l.json").string(), {(folder / "k.ptx").string()}).make({}, 1);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchSchema, EveryLaunchFileOfTheTreeFitsIt) {
  const SchemaCheck check(schema());
  int files = 0;
  for (const auto& at : fs::recursive_directory_iterator(ASSAY_SOURCE_DIR "/examples")) {
    if (at.path().extension() != ".json" || at.path().filename().string().starts_with("plan")) continue;
    const json document = json::parse(std::ifstream(at.path()));
    EXPECT_EQ(check.errors(document), std::vector<std::string>{}) << at.path();
    EXPECT_EQ(complaint(document), "") << at.path();
    ++files;
  }
  EXPECT_GT(files, 150);
}

/// One of everything.
const json kWhole = json::parse(R"j({
  "$schema": "x", "name": "n", "summary": "s", "ptx": ["k.ptx"], "accepts": "a > 0", "origin": {"by": "hand"},
  "sizes": {"a": 4, "c": "a + 1", "d": {"value": 2},
            "b": {"value": 64, "from": 32, "to": 96, "multiple": 32}},
  "tensors": {
    "x": {"dtype": "bf16", "shape": ["a", "b"], "values": "normal", "use": "in_out"},
    "v": {"dtype": "fp32", "shape": ["a", 2], "values": [1, 2, 3, "a", 5, 6, 7, 8], "strides": [3, 1],
          "use": "in"},
    "w": {"dtype": "u8", "shape": [1024], "use": "workspace"},
    "p": {"dtype": "i32", "shape": [8], "values": {"integers": [0, "a"]}, "in": "w", "offset": 16},
    "f": {"dtype": "fp32", "shape": [8], "values": {"fill": 0.5}, "partly": true},
    "c": {"dtype": "fp32", "shape": [8], "values": "range", "variable": "table"}},
  "launches": [
    {"fill": "w", "bytes": 8, "pattern": 1, "width": 4},
    {"copy": {"pointer": "w", "offset": 8}, "to": "f", "bytes": 4},
    {"function": "f", "grid": ["a", 1, 2], "block": 32, "cluster": [2, 1, 1], "shared": "64 * a",
     "cooperative": false,
     "arguments": [null, "x", {"i8": 1}, {"i64": "a"}, {"f16": 0.5}, {"bytes": "00 ff"},
                   {"struct": ["x", {"f32": 1, "at": 16}], "size": 32},
                   {"tensor_map": "x", "box": [2, 64], "swizzle": 128, "outside": "nan", "steps": [1, 1]}]}]
})j");

TEST(LaunchSchema, AndReaderTakeOneOfEverything) {
  EXPECT_EQ(SchemaCheck(schema()).errors(kWhole), std::vector<std::string>{});
  EXPECT_EQ(complaint(kWhole), "");
}

TEST(LaunchSchema, AndReaderRefuseTheSame) {
  const char* const patches[] = {
      R"([{"op": "remove", "path": "/launches"}])",
      R"([{"op": "add", "path": "/tensors/x/no_such_key", "value": 1}])",
      R"([{"op": "add", "path": "/sizes/b/no_such_key", "value": 1}])",
      R"([{"op": "remove", "path": "/sizes/b/to"}])",
      R"([{"op": "replace", "path": "/tensors/x/use", "value": "inout"}])",
      R"([{"op": "replace", "path": "/tensors/x/values", "value": "gaussian"}])",
      R"([{"op": "replace", "path": "/tensors/x/values", "value": {"normal": [0]}}])",
      R"([{"op": "replace", "path": "/tensors/x/values", "value": {"normal": [0, 1], "fill": 1}}])",
      R"([{"op": "replace", "path": "/launches/2/grid", "value": [1, 1, 1, 1]}])",
      R"([{"op": "remove", "path": "/launches/2/block"}])",
      R"([{"op": "add", "path": "/launches/2/arguments/0", "value": {"u32": 1}}])",
      R"([{"op": "add", "path": "/launches/2/arguments/0", "value": {"struct": []}}])",
      R"([{"op": "add", "path": "/launches/2/arguments/0", "value": {"pointer": "x", "no_such_key": 1}}])",
      R"([{"op": "remove", "path": "/launches/2/arguments/7/box"}])",
      R"([{"op": "replace", "path": "/launches/2/arguments/7/outside", "value": "ones"}])",
      R"([{"op": "replace", "path": "/launches/0/width", "value": 5}])",
      R"([{"op": "remove", "path": "/launches/1/to"}])",
      R"([{"op": "add", "path": "/no_such_key", "value": 1}])"};
  const SchemaCheck check(schema());
  for (const char* const patch : patches) {
    const json changed = kWhole.patch(json::parse(patch));
    EXPECT_NE(check.errors(changed), std::vector<std::string>{}) << patch;
    if (changed.contains("launches")) {
      EXPECT_NE(complaint(changed), "") << patch;
    }
  }
}

/// Those of "unknown key "x"; known here: a, b".
std::set<std::string> keys_named(const std::string& message) {
  std::set<std::string> keys;
  const size_t at = message.find("known here: ");
  std::istringstream list(at == message.npos ? "" : message.substr(at + 12));
  for (std::string key; std::getline(list, key, ',');) keys.insert(key.substr(key.find_first_not_of(' ')));
  return keys;
}

TEST(LaunchSchema, KnowsTheKeysOfTheReaderAndNoOthers) {
  const json whole = schema();
  const std::pair<const char*, const char*> rows[] = {
      {"", "/properties"},
      {"/sizes/b", "/$defs/size/anyOf/1/properties"},
      {"/tensors/x", "/$defs/tensor/properties"},
      {"/tensors/p/values", "/$defs/values/anyOf/2/properties"},
      {"/launches/0", "/$defs/step/anyOf/1/properties"},
      {"/launches/1", "/$defs/step/anyOf/2/properties"},
      {"/launches/2", "/$defs/step/anyOf/0/properties"},
      {"/launches/1/copy", "/$defs/argument/anyOf/2/properties"},
      {"/launches/2/arguments/6", "/$defs/argument/anyOf/4/properties"},
      {"/launches/2/arguments/5", "/$defs/argument/anyOf/5/properties"},
      {"/launches/2/arguments/7", "/$defs/argument/anyOf/6/properties"}};
  for (const auto& [place, properties] : rows) {
    const json patch = {{{"op", "add"}, {"path", std::string(place) + "/no_such_key"}, {"value", 1}}};
    std::set<std::string> known;
    for (const auto& [key, value] : whole.at(json::json_pointer(properties)).items()) known.insert(key);
    EXPECT_EQ(keys_named(complaint(kWhole.patch(patch))), known) << place;
  }
}

}  // namespace launch_schema_test
}  // namespace assay
