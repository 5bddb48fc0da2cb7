// Files as models leave them: what inspect says of them, the layouts that verify and trace run them in, and
// where their NaN come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/tensor/safetensors.h"
#include "tests/cli/program.h"

namespace assay {
namespace inspect_test {

using Shape = std::vector<int64_t>;

Tensor filled(Dtype dtype, const Shape& shape, double size) {
  std::vector<Axis> axes;
  for (const int64_t s : shape) axes.push_back({"", s});
  Tensor tensor("", dtype, axes);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, size * static_cast<double>(i * 37 % 19 + 1) / 19);
  return tensor;
}

/// Inputs of gla: B=1, T=20, H=2, K=16, V=8.
TensorMap inputs() {
  return {{"q", filled(Dtype::bf16, {1, 20, 2, 16}, 1)},
          {"k", filled(Dtype::bf16, {1, 20, 2, 16}, -1)},
          {"v", filled(Dtype::bf16, {1, 20, 2, 8}, 1)},
          {"g", filled(Dtype::fp32, {1, 20, 2, 16}, -1)},
          {"initial_state", filled(Dtype::fp32, {1, 2, 16, 8}, 1)}};
}

/// The tensor with T and H exchanged in memory and shape.
Tensor heads_first(const Tensor& x) {
  const int64_t T = x.axes[1].size, H = x.axes[2].size, K = x.axes[3].size;
  Tensor y = filled(x.dtype, {1, H, T, K}, 0);
  for (int64_t flat = 0; flat < x.size(); ++flat) {
    const int64_t t = flat / (H * K), h = flat / K % H, k = flat % K;
    y.set_bits((h * T + t) * K + k, x.bits(flat));
  }
  return y;
}

void expect_parts(const Ran& ran, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(ran.status, status) << ran.err;
  for (const std::string& part : parts)
    EXPECT_NE((ran.out + ran.err).find(part), std::string::npos) << "no '" << part << "' in\n"
                                                                 << ran.out << ran.err;
}

TEST(Inspect, SaysRangesClassesAndTheOperatorsThatFit) {
  const ScratchFolder here;
  TensorMap tensors = inputs();
  tensors["k"].set(37, std::numeric_limits<double>::quiet_NaN());
  tensors["g"].set(0, -std::numeric_limits<double>::infinity());
  tensors["v"].set(3, 0), tensors["v"].set(4, min_subnormal(Dtype::bf16));
  write_safetensors(here / "x.safetensors", tensors);
  const Ran ran = run_assay("inspect x.safetensors --json x.json", here);
  expect_parts(
      ran, 0,
      {"q  bf16 [1,20,2,16]  0.0527344 to 1, zeros 0 %, subnormals 0 %", "exponents 2^-5",
       "1 nan, the first k[0,1,0,5]", "1 -inf, the first g[0,0,0,0]", "zeros 0.312 %, subnormals 0.312 %",
       "fits gla  B=1 T=20 H=2 K=16 V=8 N=1", "not simple_gla: g: "});
  const auto json = nlohmann::json::parse(read_file(here / "x.json"));
  EXPECT_EQ(json.at("tensors").at("k").at("nan").at("count"), 1);
  EXPECT_EQ(json.at("tensors").at("k").at("nan").at("first"), (Shape{0, 1, 0, 5}));
  EXPECT_EQ(json.at("tensors").at("v").at("zeros"), 1);
  int64_t counted = 0;
  for (const auto& [e, n] : json.at("tensors").at("q").at("exponents").items()) counted += n.get<int64_t>();
  EXPECT_EQ(counted, 640);
  EXPECT_GT(json.at("operators").size(), 10u);
  EXPECT_EQ(json.at("operators").at(0).at("sizes").at("T"), 20);
}

TEST(Inspect, NamesWhatIsMissingUnderOtherNames) {
  const ScratchFolder here;
  TensorMap tensors = inputs();
  tensors["query_states"] = tensors["q"], tensors.erase("q");
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(run_assay("inspect x.safetensors", here), 0, {"not gla: no tensor q; not used: query_states"});
  expect_parts(run_assay("inspect x.safetensors --map q=query_states", here), 0, {"fits gla"});
}

TEST(Inputs, OfAnotherOrderGiveTheBitsOfTheOperatorsOwnAndAreSaid) {
  const ScratchFolder here;
  const TensorMap plain = inputs();
  TensorMap swapped = plain;
  for (const char* name : {"q", "k", "v", "g"}) swapped[name] = heads_first(plain.at(name));
  write_safetensors(here / "plain.safetensors", plain);
  write_safetensors(here / "swapped.safetensors", swapped);
  const std::string run = "verify gla.fused_recurrent --backend vm --json out.json --inputs ";
  const auto worst = [&](const std::string& file, const std::string& options) {
    EXPECT_EQ(run_assay(run + file + options, here).status, 0) << file;
    return nlohmann::json::parse(read_file(here / "out.json")).at("outputs").dump();
  };
  EXPECT_EQ(worst("swapped.safetensors", ""), worst("plain.safetensors", ""));
  EXPECT_EQ(worst("swapped.safetensors", ""), worst("plain.safetensors", " --layout heads-first"));
  const std::string said = "q, k, v, g: heads-first ([B,H,T,K]) in swapped.safetensors: run in that layout";
  for (const char* command : {"verify gla.fused_recurrent --backend vm --inputs ",
                              "trace gla.fused_recurrent --backend vm --inputs ", "inspect "})
    expect_parts(run_assay(command + std::string("swapped.safetensors"), here), 0, {said});
}

TEST(Inputs, EqualTokensAndHeadsAreAskedFor) {
  const ScratchFolder here;
  TensorMap tensors{{"q", filled(Dtype::bf16, {1, 4, 4, 16}, 1)},
                    {"k", filled(Dtype::bf16, {1, 4, 4, 16}, 1)},
                    {"v", filled(Dtype::bf16, {1, 4, 4, 8}, 1)}};
  write_safetensors(here / "x.safetensors", tensors);
  const std::string run = "verify gla.fused_recurrent --backend vm --inputs x.safetensors";
  const Ran ran = run_assay(run, here);
  expect_parts(ran, 2, {"T and H are both 4", "give --layout dense or heads-first"});
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  expect_parts(run_assay(run + " --layout dense", here), 0,
               {"PASS", "--inputs x.safetensors --layout dense"});
  expect_parts(run_assay(run + " --layout heads-first", here), 0, {"PASS"});
}

/// o of gla in fp64, as the paper writes it, for B = 1.
Tensor gla_output(const TensorMap& in) {
  const std::vector<Axis>& axes = in.at("v").axes;
  const int64_t T = axes[1].size, H = axes[2].size, V = axes[3].size, K = in.at("q").axes[3].size;
  Tensor o = filled(Dtype::fp64, {1, T, H, V}, 0);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t v = 0; v < V; ++v) {
      std::vector<double> S;
      for (int64_t k = 0; k < K; ++k) S.push_back(in.at("initial_state").value((h * K + k) * V + v));
      for (int64_t t = 0; t < T; ++t) {
        const int64_t row = t * H + h;
        double sum = 0;
        for (int64_t k = 0; k < K; ++k) {
          double& s = S[static_cast<size_t>(k)];
          s = std::exp(in.at("g").value(row * K + k)) * s +
              in.at("k").value(row * K + k) * in.at("v").value(row * V + v);
          sum += in.at("q").value(row * K + k) * s;
        }
        o.set(row * V + v, sum / std::sqrt(static_cast<double>(K)));
      }
    }
  return o;
}

Tensor transposed_state(const Tensor& x) {
  const int64_t K = x.axes[2].size, V = x.axes[3].size;
  Tensor y = filled(x.dtype, {1, x.axes[1].size, V, K}, 0);
  for (int64_t flat = 0; flat < x.size(); ++flat)
    y.set_bits(flat / (K * V) * (K * V) + flat % V * K + flat / V % K, x.bits(flat));
  return y;
}

/// K = V and T = H = 4, so that no shape shows which axis is which, with the o that a model gave.
TensorMap square_with_output() {
  TensorMap tensors{{"q", filled(Dtype::bf16, {1, 4, 4, 16}, 1)},
                    {"k", filled(Dtype::bf16, {1, 4, 4, 16}, -1)},
                    {"v", filled(Dtype::bf16, {1, 4, 4, 16}, 1)},
                    {"g", filled(Dtype::fp32, {1, 4, 4, 16}, -1)},
                    {"initial_state", filled(Dtype::fp32, {1, 4, 16, 16}, 4)}};
  tensors["o"] = gla_output(tensors);
  return tensors;
}

TEST(Inputs, OutputsInTheFileAreHeldAgainstTheReference) {
  const ScratchFolder here;
  const std::string run = "verify gla.fused_recurrent --backend vm --json out.json --inputs x.safetensors";
  TensorMap tensors = square_with_output();
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(run_assay(run, here), 0,
               {"PASS", "the file's own outputs are not contradicted", "o in the file"});
  expect_parts(run_assay("inspect x.safetensors", here), 0, {"fits gla", "; its outputs o"});
  tensors["attn"] = tensors["o"], tensors.erase("o");
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(run_assay(run + " --map o=attn", here), 0, {"o in the file", "--map o=attn"});
  tensors["attn"].set(5, tensors["attn"].value(5) + 1);
  write_safetensors(here / "x.safetensors", tensors);
  const Ran ran = run_assay(run + " --map o=attn", here);
  expect_parts(ran, 1,
               {"FINDING  1 element of o in the file beyond the bound",
                "worst element in the file o[b=0,t=0,h=0,v=5]"});
  EXPECT_EQ(ran.out.find("transposed"), std::string::npos) << ran.out;
  const auto json = nlohmann::json::parse(read_file(here / "out.json"));
  EXPECT_EQ(json.at("cause"), "expected/o");
  EXPECT_EQ(json.at("expected_outputs").at(0).at("violation"), 1);
  EXPECT_EQ(json.at("outputs").at(0).at("violation"), 0);
  expect_parts(run_assay(run + " --map o=attn --fail-on violation", here), 0, {"FINDING"});
  expect_parts(run_assay(run + " --map o=attn --fail-on expected", here), 1, {"FINDING"});
}

TEST(Inputs, AxesThatNoShapeShowsAreToldByTheFilesOutputs) {
  const ScratchFolder here;
  const std::string run = "verify gla.fused_recurrent --backend vm --inputs x.safetensors";
  TensorMap tensors = square_with_output();
  tensors["initial_state"] = transposed_state(tensors.at("initial_state"));
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(
      run_assay(run, here), 1,
      {"cause transposed (100 %): initial_state is transposed: axes K and V exchanged; with that o agrees; "
       "give --layout initial_state=transposed"});
  expect_parts(run_assay(run + " --layout initial_state=transposed", here), 0, {"PASS", "o in the file"});
  tensors.erase("o");
  write_safetensors(here / "x.safetensors", tensors);
  const Ran silent = run_assay(run + " --layout dense", here);
  expect_parts(silent, 0, {"PASS"});
  EXPECT_EQ(silent.out.find("transposed"), std::string::npos) << silent.out;

  tensors = square_with_output();
  for (const char* name : {"q", "k", "v", "g", "o"}) tensors[name] = heads_first(tensors.at(name));
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(run_assay(run, here), 1,
               {"T and H are both 4", "read as [B,T,H,..], held against its outputs",
                "g, k, q, v, o are transposed: axes T and H exchanged; with that o agrees"});
  expect_parts(run_assay(run + " --layout heads-first", here), 0, {"PASS", "o in the file"});
}

TEST(Inputs, ANaNInThemIsTheOriginAndNothingIsRun) {
  const ScratchFolder here;
  TensorMap tensors = inputs();
  tensors["k"].set(37, std::numeric_limits<double>::quiet_NaN());
  write_safetensors(here / "x.safetensors", tensors);
  expect_parts(run_assay("trace gla.chunk --backend vm --inputs x.safetensors", here), 2,
               {"origin: k[b=0,t=1,h=0,k=5] = nan is in the inputs already, no kernel made it",
                "nothing was launched"});
}

TEST(Inputs, AnOverflowThatTheirGateCausesIsTracedToThem) {
  const ScratchFolder here;
  TensorMap tensors = inputs();
  for (int64_t i = 0; i < 16; ++i) tensors["g"].set(32 + i, -10000);
  write_safetensors(here / "x.safetensors", tensors);
  const Ran ran = run_assay("trace gla.chunk@S1 --backend vm --inputs x.safetensors", here);
  expect_parts(ran, 1, {"exp-overflow", "and gave inf because g[b=0,t=1,h=0,k=", "] = -10000"});
}

}  // namespace inspect_test
}  // namespace assay
