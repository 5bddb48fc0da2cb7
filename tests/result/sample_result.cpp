#include "tests/result/sample_result.h"

#include <vector>

namespace assay::test {
namespace {

using nlohmann::json;

json output(const std::string& name, std::vector<std::pair<std::string, int64_t>> axes, int64_t T) {
  json document = {{"name", name},
                   {"axes", json::array()},
                   {"dtype", name == "o" ? "bf16" : "fp32"},
                   {"elements", 5120},
                   {"ok", 5120},
                   {"violation", 0},
                   {"nonfinite", 0},
                   {"wrong_class", 0},
                   {"undecided", 0},
                   {"by_formula", 0},
                   {"undecided_reason", ""},
                   {"max_ratio", 0.3139},
                   {"max_tightness", 0.0523},
                   {"max_relative_bound", 0.011430001},
                   {"max_enclosure", 3.1e-9},
                   {"fields", json::array()}};
  for (const auto& [axis, size] : axes) document["axes"].push_back({{"name", axis}, {"size", size}});
  std::vector<int64_t> histogram(64, 0);
  histogram[0] = 120;
  for (int bin = 48; bin < 59; ++bin) histogram[bin] = 100 * (bin - 40);
  document["histogram"] = histogram;
  document["worst"] = {{"element", name + "[b=0,t=17,h=1,v=3]"},
                       {"flat", 1027},
                       {"got", 0.8125},
                       {"expected", 0.81283719283712341},
                       {"expected_rounded", 0.8125},
                       {"got_bits", "0x3f50"},
                       {"expected_bits", "0x3f50"},
                       {"absolute", 0.00033719283712341},
                       {"relative", 4.1483441e-4},
                       {"ulp", 0.08632},
                       {"bound", 0.0107421875},
                       {"ratio", 0.03139}};
  std::vector<double> ratios;
  for (int64_t t = 0; t < T; ++t) ratios.push_back(0.01 + 0.3 * static_cast<double>((t * 7919) % 997) / 997);
  document["fields"].push_back({{"axis", "t"}, {"max_ratio", ratios}});
  document["fields"].push_back({{"axis", "v"}, {"max_ratio", {0.1, 0.3139, 0.0, 0.2}}});
  return document;
}

json source(int line, int ptx_line) {
  return {{"file", "kernels/gla/chunk.cu"},
          {"line", line},
          {"ptx_line", ptx_line},
          {"frames", {"kernels/device/format.cuh:94", "kernels/gla/chunk.cu:106"}},
          {"function", "gla_chunk_output"}};
}

json origin() {
  const json link = {{"where", source(142, 903)},
                     {"instruction", "ex2.approx.ftz.f32"},
                     {"text", "weight = exp2f(x) * (j <= i);"}};
  return {{"element", "o[b=0,t=16,h=0,v=3]"},
          {"kind", "exp-overflow"},
          {"where", source(142, 903)},
          {"source_text", "weight = exp2f(x) * (j <= i);"},
          {"instruction", "ex2.approx.ftz.f32 %f312, %f311;"},
          {"operands", {{{"name", "%f311"}, {"type", "f32"}, {"value", 130.25}, {"bits", "0x43024000"}}}},
          {"result", "inf"},
          {"block", {1, 0, 0}},
          {"thread", {37, 0, 0}},
          {"inputs", {{{"element", "g[b=0,t=16,h=0,k=3]"}, {"value", -90.5}, {"nearest_finite", "-88.7"}}}},
          {"inputs_truncated", true},
          {"chain", {link, link}},
          {"infinity_made_at", link},
          {"sentence", "ex2 at kernels/gla/chunk.cu:142 got 130.25 because g[b=0,t=16,h=0,k=3] = -90.5"}};
}

json slice() {
  const json triple = {1, 0, 0};
  const json operand = {{"name", "%f3"}, {"type", "f32"}, {"value", 2.5}, {"bits", "0x40200000"}};
  const json at = {{"where", source(150, 920)},
                   {"instruction", "fma.rn.f32 %f1, %f3, %f2, %f1"},
                   {"text", "sum += a < b;"}};
  return {{"element", "o[b=0,t=16,h=0,v=3]"},
          {"value", "inf"},
          {"instances", 123456},
          {"truncated", false},
          {"blocks", 3},
          {"blocks_of", 12},
          {"unwritten", false},
          {"chain",
           {{{"at", at},
             {"operands", {operand}},
             {"result", "inf"},
             {"type", "f32"},
             {"block", triple},
             {"thread", triple},
             {"times", 64}}}},
          {"lines", {{{"at", at}, {"instances", 64}, {"smallest", 0.5}, {"largest", 8.0}, {"from", {0}}}}},
          {"inputs",
           {{{"input", "g"},
             {"elements", 17},
             {"first", "g[b=0,t=0,h=0,k=3]"},
             {"last", "g[b=0,t=16,h=0,k=3]"},
             {"largest", "g[b=0,t=16,h=0,k=3]"},
             {"value", -90.5}}}},
          {"nodes", json::array()},
          {"nodes_left_out", 123456}};
}

json rounding_part() {
  return {{"where", "o of tokens 12288 to 16383, head 0, sequence 0"},
          {"elements", 262144},
          {"error", 0.0153},
          {"predicted", 0.00234},
          {"ratio", 6.52},
          {"allowed_ratio", 1.08},
          {"slope", 0.97},
          {"allowed_slope", 0.0003},
          {"bias", 1e-6},
          {"allowed_bias", 0.0002},
          {"carried", 31.5},
          {"allowed_carried", 25.2},
          {"excess", 6.8}};
}

json rounding() {
  return {{"outputs",
           {{{"name", "o"},
             {"parts", 261},
             {"unlikely", 57},
             {"worst", rounding_part()},
             {"all", rounding_part()},
             {"skipped", ""}},
            {{"name", "dg"},
             {"parts", 0},
             {"unlikely", 0},
             {"worst", rounding_part()},
             {"all", rounding_part()},
             {"skipped", "too long for its roundings to be sampled"}}}},
          {"expected", json::array()},
          {"false_alarms", 1e-9},
          {"seconds", 0.7}};
}

json power() {
  return {{"outputs",
           {{{"name", "o"},
             {"smallest", 0.0003},
             {"by", "statistic"},
             {"smallest_late", 0.0004},
             {"by_late", "statistic"},
             {"error", 0.0153},
             {"zeros", false},
             {"flipped", false},
             {"inconclusive", false}},
            {{"name", "dg"},
             {"smallest", 4.2},
             {"by", "bound"},
             {"smallest_late", 5.5},
             {"by_late", "bound"},
             {"error", 0.037},
             {"zeros", true},
             {"flipped", true},
             {"inconclusive", true}}}},
          {"expected", json::array()}};
}

json formula() {
  return {{"outputs",
           {{{"name", "o"},
             {"elements", 5120},
             {"judged", 5118},
             {"violation", 3},
             {"worst",
              {{"element", "o[b=0,t=70,h=0,v=5]"},
               {"flat", 2245},
               {"exact", -0.4560429},
               {"expected", -0.4521911},
               {"difference", 0.0038518},
               {"allowed", 8.69e-9}}},
             {"max_difference", 0.0037},
             {"max_allowed", 5.5e-7}}}},
          {"skipped", ""},
          {"turned", 24},
          {"loss", ""},
          {"seconds", 0.25}};
}

json shadow() {
  return {{"outputs",
           {{{"name", "o"},
             {"elements", 5120},
             {"followed", 5118},
             {"nonfinite", 2},
             {"max_error", 0.0125},
             {"rms_error", 0.00133},
             {"rms_exact", 1.27},
             {"worst", "o[b=0,t=3,h=0,v=9]"},
             {"value", 1.5},
             {"exact", 1.5125},
             {"bound", 0.02}}}},
          {"element", nullptr},
          {"edges",
           {{{"where", source(142, 903)},
             {"instruction", "ex2.approx.ftz.f32"},
             {"quantity", "argument"},
             {"format", "fp32"},
             {"extreme", 126.5},
             {"limit", 128.0},
             {"distance", 1.5},
             {"text", "saw up to 126.5: within 1.5 of overflow (threshold 128)"}}}},
          {"lines",
           {{{"where", source(149, 950)},
             {"instruction", "cvt.rn.bf16.f32"},
             {"share", 62.5},
             {"roundings", 5120},
             {"largest", 0.00390625}}}},
          {"amplifiers", json::array()},
          {"amplifiers", json::array()},
          {"parting", nullptr},
          {"ended", 2},
          {"lane_instructions", 987654321},
          {"seconds", 0.9},
          {"seconds_by_line", 1.8}};
}

json sample_case(int64_t T) {
  return {{"kernel", "gla.chunk"},
          {"B", 1},
          {"T", T},
          {"H", 2},
          {"HV", 0},
          {"K", 64},
          {"V", 32},
          {"M", 0},
          {"cu_seqlens", {0, 15, T}},
          {"dtype", "bf16"},
          {"gate_dtype", "fp32"},
          {"decay", "ladder:8"},
          {"values", "normal"},
          {"seed", 18446744073709551615ull},
          {"rates", 2.0},
          {"scale", nullptr},
          {"parameters", nullptr},
          {"layout", nullptr},
          {"direction", "forward"},
          {"without", json::array()},
          {"initial_state", false},
          {"final_state_gradient", false},
          {"overrides", json::array()},
          {"blocks", nullptr}};
}

}  // namespace

json passed_verification(int64_t T) {
  const std::string token = "gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0";
  return {{"kind", "verification"},
          {"schema", 1},
          {"tool", {{"name", "assay"}, {"version", "0.1.0"}, {"commit", "c56a40a"}}},
          {"kernel", "gla.chunk"},
          {"case", sample_case(T)},
          {"token", token},
          {"replay", "assay replay " + token},
          {"domain", json::array()},
          {"lane_instructions", 987654321},
          {"backend", "vm sm_90"},
          {"arithmetic", "bf16 operands, fp32 accumulation"},
          {"verdict", "pass"},
          {"cause", ""},
          {"outputs",
           {output("o", {{"B", 1}, {"T", T}, {"H", 2}, {"V", 32}}, T),
            output("final_state", {{"N", 1}, {"H", 2}, {"K", 64}, {"V", 32}}, 2)}},
          {"expected_outputs", json::array()},
          {"accumulated_decay",
           {{{"element", "w[b=0,t=4095,h=0,k=3]"},
             {"steps", 4096},
             {"decay", -1243.5},
             {"error", 0.8125},
             {"bound", 6.25}}}},
          {"properties_failed", json::array()},
          {"trap", nullptr},
          {"triage", nullptr},
          {"program", nullptr},
          {"births", json::array()},
          {"repeats", json::array()},
          {"checks", nullptr},
          {"partial", nullptr},
          {"origin", nullptr},
          {"origins", json::array()},
          {"slice", nullptr},
          {"diagnosis", json::array()},
          {"lines", json::array()},
          {"unexplained", nullptr},
          {"exponents",
           {{{"where", source(142, 903)},
             {"instruction", "ex2.approx.ftz.f32"},
             {"min", -1290.4},
             {"max", 0.0},
             {"count", 1048576},
             {"nans", 0}}}},
          {"checks", nullptr},
          {"partial", nullptr},
          {"shadow", nullptr},
          {"formula", nullptr},
          {"rounding", nullptr},
          {"power", nullptr},
          {"seconds_reference", 0.0213},
          {"seconds_kernel", 0.184},
          {"bits_differ", -1},
          {"entry", nullptr},
          {"source_shape", ""},
          {"also", json::array()},
          {"checkout", nullptr},
          {"known", nullptr},
          {"identity", ""}};
}

json nan_verification() {
  json v = passed_verification();
  v["verdict"] = "finding";
  v["cause"] = "nonfinite o exp-overflow kernels/gla/chunk.cu:142";
  v["identity"] =
      "gla.chunk/nonfinite o exp-overflow kernels/gla/chunk.cu `$1 = exp2f($2) * ($3 <= $4);`"
      "/mask-after-exponential";
  v["origin"] = origin();
  v["origins"] = {{{"origin", origin()}, {"elements", 2}, {"outputs", {"o 2"}}}};
  v["slice"] = slice();
  v["shadow"] = shadow();
  v["formula"] = formula();
  v["rounding"] = rounding();
  v["power"] = power();
  v["properties_failed"] = {"same-bits-twice: o[b=0,t=3,h=0,v=1] differs"};
  v["trap"] = {{"kind", "out-of-bounds"},
               {"message", "read past v"},
               {"where", source(77, 412)},
               {"block", {0, 0, 0}},
               {"thread", {5, 0, 0}}};
  v["diagnosis"] = {{{"cause", "mask-after-exponential"},
                     {"against", json::array()},
                     {"explanation", "a masked lane overflows"},
                     {"score", 0.9375},
                     {"evidence", {"130.25 > 128"}}}};
  v["lines"] = {
      {{"at",
        {{"where", source(151, 977)}, {"instruction", "fma.rn.f32"}, {"text", "s = fused(keep, s, x);"}}},
       {"reason", "2 of its 120 values changed make all wrong elements right"}}};
  v["unexplained"] = "it was given up after 7 s; its replay explains it";
  json& o = v["outputs"][0];
  o["nonfinite"] = 2;
  o["max_ratio"] = "nan";
  o["worst"]["got"] = "nan";
  o["worst"]["got_bits"] = "0x7fc0";
  o["fields"][0]["max_ratio"][16] = "nan";
  o["fields"][0]["max_ratio"][18] = 3.2;
  return v;
}

json contradicted_verification() {
  json v = passed_verification();
  v["verdict"] = "finding";
  v["cause"] = "expected/o";
  v["identity"] = "gla.chunk/expected/o/transposed";
  json o = v["outputs"][0];
  o["violation"] = 37, o["ok"] = 5120 - 37, o["max_ratio"] = 1234.5;
  o["worst"]["element"] = "o[b=0,t=2,h=0,v=1]", o["worst"]["got"] = 0.375, o["worst"]["ratio"] = 1234.5;
  v["expected_outputs"] = {o};
  v["diagnosis"] = {
      {{"cause", "transposed"},
       {"against", json::array()},
       {"explanation", "initial_state is transposed: axes K and V exchanged; with that o agrees"},
       {"score", 1.0},
       {"evidence", {"the largest error/bound of o in the file falls from 1234 to 0.5"}}}};
  return v;
}

json fuzz_run(int findings) {
  json run = {
      {"kind", "fuzz"},
      {"tool", {{"name", "assay"}, {"version", "0.1.0"}, {"commit", "c56a40a"}}},
      {"schema", 1},
      {"kernels", {"gla.chunk", "gla.fused_recurrent"}},
      {"backend", "vm sm_90"},
      {"seed", 18446744073709551615ull},
      {"cases", 1200},
      {"passed", 1200 - findings},
      {"undecided", 0},
      {"domain", 12},
      {"seconds", 59.75},
      {"findings", json::array()},
      {"properties",
       {{{"name", "within-bound"}, {"checked", 1200}, {"failed", findings}},
        {{"name", "same-bits-twice"}, {"checked", 311}, {"failed", findings}}}},
      {"coverage",
       {{{"feature", "dtype"}, {"value", "bf16"}, {"cases", 300}},
        {{"feature", "dtype"}, {"value", "fp32"}, {"cases", 900}},
        {{"feature", "shape"}, {"value", "K != V"}, {"cases", 543}}}},
      {"reached", {{{"kernel", "gla.chunk"}, {"what", "branch sides"}, {"reached", 811}, {"of", 840}}}},
      {"tightness", json::array()},
      {"reruns", json::array()},
      {"baseline", nullptr},
      {"ended_early", ""},
      {"min_cases", 1},
      {"too_few", json::array()},
      {"kernel_properties", json::array()},
      {"checkout",
       {{"commit", "0123456789abcdef0123456789abcdef01234567"}, {"branch", "main"}, {"dirty", false}}},
      {"not_shrunk", 0},
      {"database_lost", ""}};
  for (const char* kernel : {"gla.chunk", "gla.fused_recurrent"})
    run["kernel_properties"].push_back(
        {{"kernel", kernel}, {"name", "within-bound"}, {"checked", 600}, {"failed", 0}});
  for (const char* kernel : {"gla.chunk", "gla.fused_recurrent"}) {
    for (const char* decay : {"none", "reset"}) {
      run["tightness"].push_back({{"kernel", kernel},
                                  {"output", "o"},
                                  {"dtype", "bf16"},
                                  {"decay", decay},
                                  {"length_class", "T <= 64"},
                                  {"cases", 77},
                                  {"undecided", 2},
                                  {"max_ratio", 0.41234567},
                                  {"max_tightness", 0.12345678},
                                  {"max_relative_bound", 0.0117}});
    }
  }
  for (int i = 0; i < findings; ++i) {
    json finding = nan_verification();
    for (const char* name : {"kind", "schema", "tool"}) finding.erase(name);  // the run's own
    run["findings"].push_back(finding);
  }
  return run;
}

json with_hostile_texts(json document, const std::string& suffix) {
  if (document.is_string()) {
    const std::string text = document.get<std::string>();
    // Numbers written as texts stay numbers, and what is empty decides what the page has.
    if (text.empty() || text == "nan" || text == "inf" || text == "-inf") return document;
    return text + suffix;
  }
  if (!document.is_structured()) return document;
  for (auto it = document.begin(); it != document.end(); ++it) {
    const bool kind = document.is_object() && it.key() == "kind" && (*it == "fuzz" || *it == "verification");
    const bool verdict = document.is_object() && it.key() == "verdict";
    if (!kind && !verdict) *it = with_hostile_texts(*it, suffix);
  }
  return document;
}

}  // namespace assay::test
