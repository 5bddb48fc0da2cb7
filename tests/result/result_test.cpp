#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/result/comparison.h"
#include "src/result/element_slice.h"
#include "src/result/fuzz_run.h"
#include "src/result/origin.h"
#include "src/result/verification.h"
#include "tests/result/schema_check.h"

namespace assay {
namespace {

nlohmann::json schema() {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/reports/schema.json");
  return nlohmann::json::parse(file);
}

/// A result with something in every field, hostile text and every non-finite number among it.
Verification full() {
  Verification v;
  v.kernel = "gla.chunk@S1";
  v.case_ = parse_token(
      "gla.chunk@S1/B1/T80/H2/HV4/K64/V32/M3/cu0,15,80/fp16/g-bf16/ladder:8/v-sparse/s18446744073709551615/"
      "scale-0.1/both/no-g,initial_state/h0/dht/g@0,16,0,3=-90");
  v.token = token_of(v.case_);
  v.replay = "assay replay " + v.token;
  v.backend = "vm sm_90";
  v.arithmetic = "bf16 \"operands\" <b>& \\ \n fp32 accumulators \xc3\xa9";
  v.verdict = Verdict::finding;
  v.cause = "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:142";
  OutputComparison c;
  c.name = "o";
  c.axes = {{"B", 1}, {"T", 80}, {"H", 2}, {"V", 32}};
  c.dtype = Dtype::fp16;
  c.elements = 5120, c.ok = 5000, c.violation = 50, c.nonfinite = 40, c.wrong_class = 20, c.undecided = 10;
  c.worst = {
      "o[b=0,t=17,h=1,v=3]", 1123, NAN, 0.1, 0x1.998p-4, 0xffff, 0x2e66, INFINITY, -INFINITY, 1e-310, 5e-324,
      1.7976931348623157e308};
  c.max_ratio = INFINITY, c.max_tightness = 0.25, c.max_relative_bound = 0x1p-7, c.max_enclosure = 0x1p-30;
  c.histogram[0] = 7, c.histogram[63] = 9;
  c.fields = {{"t mod 64", {0.1, INFINITY}}, {"h", {}}};
  v.outputs = {c, OutputComparison{}};
  v.expected_outputs = {OutputComparison{}, c};
  v.accumulated_decay = {{"w[b=0,t=4095,h=0,k=3]", 4096, -1243.5, 0x1.8p-1, 6.25}};
  v.properties_failed = {"same-bits-twice: o[b=0,t=17,h=1,v=3] differs"};
  v.domain = {"g[b=0,t=0,h=0,k=0] = 0.5: above 0"};
  const SourceLocation where{"kernels/gla/chunk.cu", 142, 977, "gla_chunk_output"};
  v.trap = Trap{TrapKind::out_of_bounds, "store beyond o", where, {1, 2, 3}, {4, 5, 6}};
  Origin origin;
  origin.element = "o[b=0,t=17,h=1,v=3]", origin.kind = OriginKind::zero_times_infinity, origin.where = where,
  origin.source_text = "  s *= mask;";
  origin.instruction = "mul.rn.f32 %f1, %f2, %f3";
  origin.operands = {{"%f2", "f32", 0, 0}, {"%f3", "f32", INFINITY, 0x7f800000}};
  origin.result = NAN, origin.block = {7, 0, 0}, origin.thread = {33, 0, 0};
  origin.inputs = {{"g[b=0,t=16,h=0,k=3]", -90, "-88.2"}};
  origin.inputs_truncated = true;
  origin.chain = {{where, "mul.rn.f32", "s *= mask"}, {where, "st.global.u16", ""}};
  origin.infinity_made_at = ChainLink{where, "ex2.approx.ftz.f32", "exp2f(x)"};
  origin.sentence = "0 * inf at kernels/gla/chunk.cu:142";
  v.origin = origin;
  v.origins = {{origin, 96, {"o 90", "final_state 6"}}};
  ElementSlice slice;
  slice.element = "o[b=0,t=17,h=1,v=3]", slice.value = -INFINITY, slice.instances = int64_t{1} << 40;
  slice.truncated = true, slice.blocks = 3, slice.blocks_of = 12, slice.unwritten = true;
  slice.chain = {{{where, "fma.rn.f32 %f1, %f2, %f3, %f1", "s = fmaf(a, b, s)"},
                  {{"%f2", "f32", 2, 0x40000000}},
                  NAN,
                  "f32",
                  {1, 2, 3},
                  {4, 5, 6},
                  4096}};
  slice.lines = {{{where, "fma.rn.f32", ""}, 4096, 0x1p-149, 1e30, {0, 1}}, {}};
  slice.inputs = {{"g", 64, "g[0]", "g[63]", "g[5]", -90}};
  slice.nodes = {{1,
                  "ld.global.f32 %f1, [%rd1]",
                  "f32",
                  0x7fc00000,
                  NAN,
                  {1, 0, 0},
                  {33, 0, 0},
                  {{"", "", 0x7fc00000, -1, OperandSource::input, "g[5]"}}}};
  v.slice = slice;
  v.diagnosis = {{"mask-after-exponential", "the mask multiplies", 0.9, {"exponent 130.2 > 128"}}};
  v.exponents = {{where, "ex2.approx.ftz.f32", -1e4, 130.2, uint64_t{1} << 60, 3}};
  CheckReport checks;
  checks.ran = {CheckName::races, CheckName::wrap};
  checks.skipped = "the run does not end";
  CheckedPlace place{where, {1, 2, 3}, {4, 5, 6}, "written by st.shared.b32"};
  checks.findings = {
      {CheckName::races, CheckKind::race, "shared tile: written at ...", place, place, "shared tile + 4", 32},
      {CheckName::unwritten, CheckKind::never_written, "3 of 4 elements of o", place, std::nullopt, "o[b=0]",
       3}};
  checks.lane_instructions = uint64_t{1} << 61, checks.seconds = 0.25;
  v.checks = checks;
  v.partial = "blocks 0,last of every launch ran";
  ShadowReport shadow;
  shadow.outputs = {{"o", 5120, 5000, 120, 0.03, 1e-3, 1.3, "o[b=0,t=17,h=1,v=3]", 1.5, 1.53, INFINITY}};
  shadow.lines = {{where, "cvt.rn.bf16x2.f32", 62.5, uint64_t{1} << 40, 0x1p-8}};
  shadow.element = ShadowElement{"o[b=0,t=17,h=1,v=3]", 1.5, 1.53, 0.25};
  shadow.edges = {{where, "ex2.approx.ftz.f32", EdgeQuantity::argument, "fp32", 126.5, 128, 1.5,
                   "within 1.5 of overflow"}};
  shadow.parting = ShadowParting{where, "sub.rn.f32", {1, 2, 3}, {4, 5, 6}, 0, 0.77, 0x1p-6};
  shadow.ended = 3, shadow.lane_instructions = uint64_t{1} << 62;
  shadow.seconds = 1.5, shadow.seconds_by_line = 2.5;
  v.shadow = shadow;
  v.lane_instructions = uint64_t{1} << 63;
  v.seconds_reference = 0.125, v.seconds_kernel = 0.5, v.bits_differ = 12;
  v.entry = where, v.known = true;
  return v;
}

FuzzRun run() {
  FuzzRun r;
  r.kernels = {"gla.chunk", "gla.fused_recurrent"};
  r.backend = "vm sm_90";
  r.seed = ~uint64_t{0};
  r.cases = 1000, r.passed = 998, r.undecided = 1, r.domain = 2, r.seconds = 59.5;
  r.findings = {full(), Verification{}};
  r.findings[1].verdict = Verdict::undecided;
  r.properties = {{"causality", 100, 1}};
  r.coverage = {{"T mod 64", "1", 17}};
  r.tightness = {{"gla.chunk", "o", "bf16", "reset", "T <= 1024", 12, 0.5, 0.25, 0x1p-7}};
  r.reruns = {{"gla.chunk", full().token, "pass"}};
  r.baseline = BaselineReport{"earlier.json", {{"gla.chunk", "violation/o", full().token, "pass"}}};
  r.ended_early = "not enough memory", r.database_lost = "the disk is full";
  return r;
}

TEST(Result, ComesBackFromJsonAsItWas) {
  const nlohmann::json json = to_json(full());
  const nlohmann::json parsed = nlohmann::json::parse(json.dump());
  const Verification back = verification_from_json(parsed);
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.case_, full().case_);
  EXPECT_EQ(back.arithmetic, full().arithmetic);
  EXPECT_TRUE(std::isnan(back.outputs[0].worst.got));
  EXPECT_EQ(back.outputs[0].worst.got_bits, 0xffff);
  EXPECT_EQ(back.outputs[0].worst.relative, -INFINITY);
  EXPECT_EQ(back.outputs[0].worst.ulp, 1e-310);
  EXPECT_EQ(back.lane_instructions, uint64_t{1} << 63);
  EXPECT_EQ(back.origin->infinity_made_at->text, "exp2f(x)");
  EXPECT_EQ(back.trap->thread[2], 6);
  EXPECT_EQ(back.accumulated_decay.at(0).error, 0.75);
  EXPECT_EQ(back.shadow->lines[0].roundings, uint64_t{1} << 40);
  EXPECT_EQ(back.shadow->parting->exact, 0.77);
  EXPECT_EQ(back.shadow->edges.at(0).extreme, 126.5);
  EXPECT_EQ(back.shadow->element->exact, 1.53);
  EXPECT_EQ(back.slice->chain.at(0).times, 4096);
  EXPECT_EQ(back.slice->nodes.at(0).operands.at(0).input, "g[5]");
  EXPECT_EQ(back.origins.at(0).outputs.at(1), "final_state 6");
  EXPECT_EQ(back.checks->findings[0].other->thread[1], 5);
  EXPECT_FALSE(back.checks->findings[1].other);
}

TEST(Result, ADocumentFromBeforeThereWereShadowsAndSlicesIsReadWithoutThem) {
  nlohmann::json json = to_json(full());
  for (const char* name : {"shadow", "slice", "origins", "entry", "known", "identity"}) json.erase(name);
  const Verification back = verification_from_json(json);
  EXPECT_FALSE(back.shadow);
  EXPECT_FALSE(back.slice);
  EXPECT_TRUE(back.origins.empty());
  EXPECT_TRUE(SchemaCheck(schema()).errors(json).empty());
}

TEST(Result, FuzzRunsComeBackFromJsonAsTheyWere) {
  const nlohmann::json json = to_json(run());
  const FuzzRun back = fuzz_run_from_json(nlohmann::json::parse(json.dump()));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.seed, ~uint64_t{0});
  EXPECT_EQ(back.findings[0].case_, full().case_);
  EXPECT_EQ(back.findings[0].entry->line, 142);
  EXPECT_EQ(back.baseline->gone.at(0).outcome, "pass");
  EXPECT_EQ(back.reruns.at(0).token, full().token);
}

TEST(Result, DocumentsHoldAgainstTheSchema) {
  const SchemaCheck check(schema());
  for (const nlohmann::json& json : {to_json(full()), to_json(run())}) {
    for (const std::string& error : check.errors(json)) ADD_FAILURE() << error;
  }
  Verification pass;
  pass.verdict = Verdict::pass;
  EXPECT_TRUE(check.errors(to_json(pass)).empty());
}

TEST(Result, TheSchemaSeesWhatIsWrong) {
  const SchemaCheck check(schema());
  const auto broken = [&](auto change) {
    nlohmann::json json = to_json(full());
    change(json);
    return !check.errors(json).empty();
  };
  EXPECT_TRUE(broken([](auto& j) { j.erase("token"); }));
  EXPECT_TRUE(broken([](auto& j) { j["more"] = 1; }));
  EXPECT_TRUE(broken([](auto& j) { j["verdict"] = "fine"; }));
  EXPECT_TRUE(broken([](auto& j) { j["schema"] = 2; }));
  EXPECT_TRUE(broken([](auto& j) { j["outputs"][0]["ok"] = 1.5; }));
  EXPECT_TRUE(broken([](auto& j) { j["outputs"][0]["histogram"].push_back(0); }));
  EXPECT_TRUE(broken([](auto& j) { j["outputs"][0]["worst"]["got"] = "NaN"; }));
  EXPECT_TRUE(broken([](auto& j) { j["case"]["dtype"] = "bf8"; }));
  EXPECT_TRUE(broken([](auto& j) { j["shadow"]["lines"][0].erase("share"); }));
  EXPECT_TRUE(broken([](auto& j) { j["shadow"]["parting"]["value"] = "small"; }));
}

TEST(Result, DocumentsOfOtherSchemasAndBrokenOnesAreBadInputWithThePlace) {
  const std::pair<const char*, const char*> table[] = {
      {R"([])", "not a result of assay"},
      {R"({"schema":2,"kind":"verification"})", "result of schema 2: this program reads schema 1"},
      {R"({"schema":1,"kind":"fuzz"})", "result of kind \"fuzz\""},
      {R"({"schema":1,"kind":"verification"})", "result /kernel: missing"},
      {R"({"schema":1,"kind":"verification","kernel":7})", "result /kernel: expected a string"},
  };
  for (const auto& [text, message] : table) {
    try {
      verification_from_json(nlohmann::json::parse(text));
      ADD_FAILURE() << text;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
  nlohmann::json json = to_json(full());
  json["outputs"][0]["worst"]["got_bits"] = "7fc0";
  try {
    verification_from_json(json);
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("/outputs/0/worst/got_bits"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay
