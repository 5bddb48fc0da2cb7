#include "reports/print_verification.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace print_verification_test {

using nlohmann::json;

std::string text_of(const json& verification) {
  return test::printed(
      [&](const Console& console) { print_verification(console, verification_from_json(verification)); });
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(PrintVerification, APassSaysWhatItRestsOnTheCaseAndHowToRepeatIt) {
  const std::string text = text_of(test::passed_verification());
  EXPECT_TRUE(text.starts_with(
      "PASS  every element is within its proved bound\n"
      "gla.chunk  B=1 T=80 H=2 K=64 V=32  bf16, gate fp32, decay ladder:8, values normal, seed "
      "18446744073709551615, packed 0,15,80\n"
      "on vm sm_90; bf16 operands, fp32 accumulation\n"))
      << text;
  EXPECT_TRUE(text.ends_with(
      "replay: " + Console::command("assay replay gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0") +
      "\n"))
      << text;
}

TEST(PrintVerification, WhatTheFormulaAloneDecidedIsNotSaidToBeWithinABound) {
  json v = test::passed_verification();
  v["outputs"][0]["by_formula"] = 3;
  EXPECT_TRUE(text_of(v).starts_with(
      "PASS  every element is within its proved bound, or where none is finite right by its formula\n"))
      << text_of(v);
}

TEST(PrintVerification, AFindingNamesEveryFaultOnItsFirstLine) {
  json v = test::nan_verification();
  const auto first = [&] { return text_of(v).substr(0, text_of(v).find('\n')); };
  EXPECT_EQ(first(), "FINDING  out-of-bounds: read past v") << "of a run that did not end no value is judged";
  v["trap"] = nullptr;
  EXPECT_EQ(
      first(),
      "FINDING  2 non-finite elements of o, 3 elements of o wrong in exact arithmetic too, same-bits-twice "
      "broken, dg: zeros would have passed");
  EXPECT_TRUE(holds(text_of(v), "origin of o[b=0,t=16,h=0,v=3]")) << text_of(v);
}

TEST(PrintVerification, BitsOfBothEnginesAreSpokenOfOnlyWhereBothRan) {
  json v = test::passed_verification();
  EXPECT_FALSE(holds(text_of(v), "engines"));
  v["bits_differ"] = 0;
  EXPECT_TRUE(holds(text_of(v), "within its proved bound; same bits on both engines\n"));
  v["expected_outputs"] = {v["outputs"][0]};
  EXPECT_TRUE(holds(text_of(v), "the file's own outputs are not contradicted\n"));
}

TEST(PrintVerification, WhatWasNotDrawnIsNotDescribedAsIfItWere) {
  json v = test::passed_verification();
  v["token"] = "";
  EXPECT_TRUE(holds(text_of(v), "gate fp32, inputs from a file, packed")) << text_of(v);
  v["replay"] = "assay.verify(...)";
  EXPECT_TRUE(holds(text_of(v), "gate fp32, tensors of the caller, packed")) << text_of(v);
  EXPECT_FALSE(holds(text_of(v), "seed"));
}

TEST(PrintVerification, OnlyWhatTheCaseDepartsInIsSaidOfIt) {
  json v = test::passed_verification();
  json& c = v["case"];
  c["HV"] = 4, c["scale"] = 0.5, c["direction"] = "both", c["without"] = {"g"},
  c["final_state_gradient"] = true;
  c["initial_state"] = true, c["cu_seqlens"] = {0, 1, 2, 3, 4, 5, 6, 7, 80};
  EXPECT_TRUE(
      holds(text_of(v),
            "B=1 T=80 H=2 HV=4 K=64 V=32  bf16, gate fp32, decay ladder:8, values normal, seed "
            "18446744073709551615, scale 0.5, 8 packed sequences, initial state, both, gradient of the "
            "final state, without g\n"))
      << text_of(v);
  c["without"] = {"initial_state"};
  EXPECT_FALSE(holds(text_of(v), ", initial state")) << text_of(v);
}

TEST(PrintVerification, APassSaysWhatTheCaseLeftOut) {
  json v = test::passed_verification();
  v["outputs"][0]["name"] = "final_state";
  v["case"]["cu_seqlens"] = json::array(), v["case"]["initial_state"] = false,
  v["case"]["direction"] = "forward";
  EXPECT_TRUE(holds(text_of(v), "not in this case: initial state, packed sequences, gradients; assay fuzz"))
      << text_of(v);
  v["case"]["initial_state"] = true, v["case"]["direction"] = "both";
  EXPECT_TRUE(holds(text_of(v), "not in this case: packed sequences; assay fuzz")) << text_of(v);
  v["case"]["cu_seqlens"] = {0, 15, 80};
  EXPECT_FALSE(holds(text_of(v), "not in this case")) << text_of(v);
}

TEST(PrintVerification, APassOfNoElementIsSaidToBeOne) {
  json v = test::passed_verification();
  for (json& output : v["outputs"]) output["elements"] = 0;
  EXPECT_TRUE(text_of(v).starts_with("PASS  no output has an element: nothing was compared\n")) << text_of(v);
}

}  // namespace print_verification_test
}  // namespace assay
