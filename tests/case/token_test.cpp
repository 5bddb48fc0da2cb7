#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/case/case.h"
#include "src/case/decay_profiles.h"
#include "src/case/values.h"

namespace assay {
namespace {

TEST(Token, IsReadableAndShellSafe) {
  Case c;
  c.kernel = "gla.chunk@S1";
  c.T = 80, c.H = 2, c.V = 32, c.decay = "ladder:8", c.seed = 42, c.initial_state = true;
  EXPECT_EQ(token_of(c), "gla.chunk@S1/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0");
}

TEST(Token, ComesBackAsTheSameCaseForEveryField) {
  std::vector<Case> cases(1);
  cases[0].kernel = "gla.chunk";
  const auto with = [&](auto change) {
    Case c = cases[0];
    change(c);
    cases.push_back(c);
  };
  for (const auto& profile : decay_profiles()) {
    with([&](Case& c) { c.decay = profile.name; });
    for (const auto variant : profile.variants) {
      with([&](Case& c) { c.decay = std::string(profile.name) + ":" + std::string(variant); });
    }
  }
  for (const auto& kind : value_kinds()) with([&](Case& c) { c.values = kind.name; });
  for (Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    with([&](Case& c) { c.dtype = dtype; });
    with([&](Case& c) { c.gate_dtype = dtype; });
  }
  for (double scale : {1.0, 0.1, -3.5, 1e-300, 0x1.fffffffffffffp+1023, 5e-324})
    with([&](Case& c) { c.scale = scale; });
  with([](Case& c) { c.B = 3, c.T = 0, c.H = 5, c.HV = 10, c.K = 1, c.V = 256, c.M = 32; });
  with([](Case& c) { c.cu_seqlens = {0, 15, 15, 100}; });
  with([](Case& c) { c.seed = ~uint64_t{0}; });
  for (const char* layout : {"heads-first", "q=padded,k=joined", "transposed,v=4096:64:512:1"})
    with([&](Case& c) { c.layout = layout; });
  for (const double rates : {1.0, 0.125}) with([&](Case& c) { c.rates = rates; });
  with([](Case& c) { c.parameters = {{"layer_idx", 3}, {"num_layers", 12.5}}; });
  with([](Case& c) { c.direction = Direction::both, c.final_state_gradient = true; });
  with([](Case& c) { c.without = {"g", "initial_state"}, c.initial_state = true; });
  with([](Case& c) {
    c.overrides = {"g[0,16,0,3]=-90", "q[0,0,0,0]=nan", "k[0,1,0,0]=-inf", "v[0,0,0,0]=1e-30"};
  });
  for (const Case& c : cases) {
    const std::string token = token_of(c);
    EXPECT_EQ(parse_token(token), c) << token;
    EXPECT_EQ(token_of(parse_token(token)), token);
    EXPECT_EQ(token.find_first_of(" \t\n'\"`$&|;<>()[]{}*?!#~\\"), std::string::npos) << token;
  }
}

TEST(Token, FieldsNotGivenKeepTheirDefaultsAndOrderIsFree) {
  Case expected;
  expected.kernel = "gla.chunk";
  EXPECT_EQ(parse_token("gla.chunk"), expected);
  expected.T = 9, expected.K = 8;
  EXPECT_EQ(parse_token("gla.chunk/K8/T9"), expected);
}

TEST(Token, WhatCannotBeReadIsNamed) {
  const std::pair<const char*, const char*> table[] = {
      {"", "empty token"},
      {"gla.chunk/X7", "token field 'X7' is not known"},
      {"gla.chunk/T", "token field 'T': '' is not a number"},
      {"gla.chunk/T9x", "token field 'T9x': '9x' is not a number"},
      {"gla.chunk/T99999999999999999999", "not a number in range"},
      {"gla.chunk/T9/T9", "token field 'T9': given twice"},
      {"gla.chunk/bf16/fp16", "token field 'fp16': given twice"},
      {"gla.chunk/none/mild", "token field 'mild': given twice"},
      {"gla.chunk/g-int4", "int4"},
      {"gla.chunk/l-heads", "unknown layout 'heads'"},
      {"gla.chunk/l-padded/l-joined", "token field 'l-joined': given twice"},
      {"gla.chunk/v-noraml", "did you mean 'normal'?"},
      {"gla.chunk/ladder:x", "decay 'ladder:x': 'x' is not a number"},
      {"gla.chunk/g@0,0", "write it as g@0,16,0,3=-90"},
      {"gla.chunk//T9", "token field '' is not known"},
      {"gla.chunk/cu0,a", "'a' is not a number"},
      {"gla.chunk/s-1", "'-1' is not a number in range"},
  };
  for (const auto& [token, message] : table) {
    try {
      parse_token(token);
      ADD_FAILURE() << token;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << token << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
