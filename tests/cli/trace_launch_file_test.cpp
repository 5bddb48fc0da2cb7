// assay trace of a launch file: its verdict, and which options it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace trace_launch_file_test {

/// d[t] = box[t + 32] of a shared box that the second warp fills, with no barrier between.
constexpr const char* kRacing = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 px, .param .u64 pd) {
  .shared .align 4 .b8 box[512];
  .reg .pred %q; .reg .b32 %t, %box; .reg .f32 %f; .reg .b64 %x, %d, %at;
  ld.param.u64 %x, [px]; ld.param.u64 %d, [pd];
  mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4; add.s64 %x, %x, %at; add.s64 %d, %d, %at;
  mov.u32 %box, box; mad.lo.u32 %box, %t, 4, %box;
  ld.global.f32 %f, [%x]; st.shared.f32 [%box], %f;
  BARRIER
  setp.ge.u32 %q, %t, 32; @%q bra DONE;
  ld.shared.f32 %f, [%box+128]; st.global.f32 [%d], %f;
DONE: ret;
}
)";

class TraceLaunchFile : public testing::Test {
 protected:
  TraceLaunchFile() { write("racing", ""), write("right", "bar.sync 0;"); }
  void write(const std::string& name, const std::string& barrier) {
    std::string ptx = kRacing;
    ptx.replace(ptx.find("BARRIER"), 7, barrier);
    std::ofstream(folder / (name + ".ptx")) << ptx;
    std::ofstream(folder / (name + ".json")) << R"({"ptx": ")" << name << R"(.ptx",
      "tensors": {"x": {"dtype": "fp32", "shape": [64], "values": "normal"},
                  "d": {"dtype": "fp32", "shape": [32]}},
      "launches": [{"function": "turn", "grid": 1, "block": 64, "arguments": ["x", "d"]}]})";
  }
  const ScratchFolder folder;
};

TEST_F(TraceLaunchFile, OutputsMadeOfUnwrittenMemoryAreAFindingWhateverIsChecked) {
  const Ran ran = run_assay("trace racing.json --json t.json", folder);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("FINDING  race, unwritten-output"), ran.out.npos) << ran.out;
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "t.json"))["verdict"], "finding");
  const Ran races = run_assay("trace racing.json --checks races", folder);
  EXPECT_EQ(races.status, 1);
  EXPECT_NE(races.out.find("checked: races, in"), races.out.npos) << races.out;
  EXPECT_NE(races.out.find("replay: assay trace racing.json --checks races\n"), races.out.npos) << races.out;
  for (const char* command : {"trace racing.json --checks none", "check racing.json --checks none --once"}) {
    const Ran none = run_assay(command, folder);
    EXPECT_EQ(none.status, 1) << command << none.out;
    EXPECT_NE(none.out.find("FINDING  32 non-finite elements of d"), none.out.npos) << none.out;
  }
}

TEST_F(TraceLaunchFile, ARepairedProgramPassesUnderTheChecks) {
  const Ran ran = run_assay("trace right.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("PASS  no trap, no finding of the checks, nothing but finite values made"),
            ran.out.npos)
      << ran.out;
}

TEST_F(TraceLaunchFile, StrictReadsAreATrap) {
  for (const char* command : {"trace", "replay", "check"}) {
    const Ran ran = run_assay(std::string(command) + " racing.json --strict-reads", folder);
    EXPECT_EQ(ran.status, 1) << command << ran.err;
    EXPECT_NE(ran.out.find("unwritten-read"), ran.out.npos) << command << ran.out;
    EXPECT_NE(ran.out.find("racing.json --strict-reads\n"), ran.out.npos) << "the replay line" << ran.out;
  }
}

TEST_F(TraceLaunchFile, WhatIsOfClaimsIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"trace right.json --checks foo", "unknown check 'foo'"},
      {"trace right.json --formula always", "right.json: --formula is of kernels with a claim"},
      {"trace right.json --rounding auto", "right.json: --rounding is of kernels with a claim"},
      {"replay right.json --formula never", "right.json: --formula is of kernels with a claim"},
      {"trace right.json --at right.cu:1 --checks races", "--checks excludes --at"},
  };
  for (const auto& [arguments, message] : rows) {
    const Ran ran = run_assay(arguments, folder);
    EXPECT_EQ(ran.status, 2) << arguments << ran.out;
    EXPECT_NE(ran.err.find(message), ran.err.npos) << arguments << ": " << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

}  // namespace trace_launch_file_test
}  // namespace assay
