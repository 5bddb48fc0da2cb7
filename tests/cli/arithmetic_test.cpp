// assay arithmetic: what a program's text says of its roundings.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace arithmetic_test {

constexpr const char* kText = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "/somewhere/scan.py"
.visible .entry scan()
{
.reg .f32 %f<6>;
.loc 1 10 1
ex2.approx.ftz.f32 %f1, %f2;
ex2.approx.ftz.f32 %f3, %f4;
ret;
}
)";

TEST(Arithmetic, ProposesAPresetAndTheLineOfEachRounding) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << kText;
  const Ran ran = run_assay("arithmetic k.ptx --operator gla --json k.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"preset\":\"fp32-recurrent\""), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("no launch multiplies matrices"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("scan.py:10: an exponential, 2 ulp (2 ex2.approx.ftz.f32): decay"), ran.out.npos)
      << ran.out;
  const auto written = nlohmann::json::parse(read_file(folder / "k.json"));
  EXPECT_EQ(written["evidence"][0]["line"], "scan.py:10");
  EXPECT_EQ(written["arithmetic"]["preset"], "fp32-recurrent");
}

TEST(Arithmetic, ADeclarationFarLooserThanTheProgramIsStatusOne) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << kText;
  const Ran loose = run_assay("arithmetic k.ptx --operator gla --declared triton-chunk", folder);
  EXPECT_EQ(loose.status, 1) << loose.err;
  EXPECT_NE(loose.out.find("declared too loosely: triton-chunk"), loose.out.npos) << loose.out;
  EXPECT_EQ(run_assay("arithmetic k.ptx --operator gla --declared fp32-recurrent", folder).status, 0);
}

TEST(Arithmetic, WhatCannotBeReadIsOneLine) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << kText;
  const std::pair<std::string, const char*> table[] = {
      {"none.ptx", "none.ptx"},
      {"k.ptx --operator glaa", "glaa"},
      {"k.ptx --declared triton-chnk", "no arithmetic preset is called \"triton-chnk\""},
      {"k.ptx --declared '{\"preset\": '", "neither a preset's name nor a JSON object"},
  };
  for (const auto& [arguments, part] : table) {
    const Ran ran = run_assay("arithmetic " + arguments, folder);
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_NE(ran.err.find(part), ran.err.npos) << ran.err;
  }
}

}  // namespace arithmetic_test
}  // namespace assay
