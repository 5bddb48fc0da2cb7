// assay decode: what a module holds, and what the machine lacks of it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace {

constexpr const char* kText = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "k.cu"
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .f32 %f<6>;
.reg .b64 %rd<3>; .reg .b32 %r<5>;
.loc 1 10 1
ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
fma.rn.f32 %f5, %f1, %f2, %f3;
BODY
ret;
}
)";

std::string with(const std::string& body) {
  std::string text = kText;
  return text.replace(text.find("BODY"), 4, body);
}

TEST(Decode, TellsWhatEachInstructionReadsAndWrites) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << with("");
  const Ran ran = run_assay("decode k.ptx --signatures --json k.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("ld.global.v4.f32  k.cu:10"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("load; reads %rd1; writes %f1 %f2 %f3 %f4; read 16 bytes global"), ran.out.npos)
      << ran.out;
  const nlohmann::json entry = nlohmann::json::parse(read_file(folder / "k.json"))["functions"][0];
  EXPECT_EQ(entry["parameters"][1]["offset"], 8);
  EXPECT_EQ(entry["instructions"][1]["signature"]["operation"], "fma");
  EXPECT_EQ(entry["instructions"][1]["signature"]["status"]["sm_80"], "exact");
}

TEST(Decode, ListsWhatTheMachineLacksAndGoesOn) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << with("fns.b32 %r1, %r2, %r3, %r4;");
  const Ran ran = run_assay("decode k.ptx", folder);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("fns.b32  1 times, first on line 12"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("ret"), ran.out.npos);
}

}  // namespace
}  // namespace assay
