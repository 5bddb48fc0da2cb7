#include "src/result/inspection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/result/schema_check.h"

namespace assay {
namespace {

using nlohmann::json;

/// Inputs that gla fits, one of them with values of every class, and tensors that are none.
json sample() {
  TensorMap tensors{{"q", Tensor("q", Dtype::bf16, {{"", 1}, {"", 3}, {"", 2}, {"", 4}})},
                    {"o", Tensor("o", Dtype::bf16, {{"", 1}, {"", 3}, {"", 2}, {"", 4}})},
                    {"offsets", Tensor("offsets", Dtype::i64, {{"", 2}})},
                    {"none", Tensor("none", Dtype::fp32, {{"", 0}})},
                    {"bad", Tensor("bad", Dtype::fp32, {{"", 2}, {"", 3}})}};
  tensors["k"] = tensors["v"] = tensors["q"];
  const double values[] = {0, NAN, HUGE_VAL, -HUGE_VAL, 0x1p-140, -3};
  for (int64_t i = 0; i < 6; ++i) tensors["bad"].set(i, values[i]);
  Case base;
  base.kernel = "inspect";
  return to_json(inspect("x.npz", tensors, fit_operators(tensors, base, 0, "x.npz")));
}

TEST(Inspection, HoldsAgainstTheSchema) {
  std::ifstream file(ASSAY_SOURCE_DIR "/reports/schema.json");
  const SchemaCheck check(json::parse(file));
  for (const std::string& error : check.errors(sample())) ADD_FAILURE() << error;
  const auto broken = [&](const std::function<void(json&)>& change) {
    json document = sample();
    change(document);
    EXPECT_FALSE(check.errors(document).empty());
  };
  broken([](json& d) { d["tensors"]["q"].erase("nan"); });
  broken([](json& d) { d["tensors"]["bad"]["exponents"]["1"] = "one"; });
  broken([](json& d) { d["operators"][0]["sizes"]["T"] = nullptr; });
  broken([](json& d) { d["operators"][0]["more"] = 1; });
  broken([](json& d) { d["kind"] = "inspected"; });
}

TEST(Inspection, SaysWhatTheTensorsHold) {
  const json document = sample(), bad = document.at("tensors").at("bad");
  EXPECT_EQ(bad.at("nan"), (json{{"count", 1}, {"first", {0, 1}}}));
  EXPECT_EQ(bad.at("-inf"), (json{{"count", 1}, {"first", {1, 0}}}));
  EXPECT_EQ(bad.at("min"), -3);
  EXPECT_EQ(bad.at("subnormals"), 1);
  EXPECT_EQ(bad.at("exponents").at("1"), 1);
  EXPECT_TRUE(document.at("tensors").at("none").at("min").is_null());
  EXPECT_TRUE(document.at("tensors").at("offsets").at("exponents").empty());
}

TEST(Inspection, NamesOutputsApartFromInputsAndFromWhatIsUnused) {
  for (const json& fit : sample().at("operators")) {
    if (fit.at("operator") != "gla") continue;
    EXPECT_EQ(fit.at("fits"), true);
    EXPECT_EQ(fit.at("matched"), (json{"q", "k", "v"}));
    EXPECT_EQ(fit.at("expected"), json::array({"o"}));
    EXPECT_EQ(fit.at("unused"), (json{"bad", "none", "offsets"}));
    EXPECT_EQ(fit.at("sizes").at("T"), 3);
  }
}

}  // namespace
}  // namespace assay
