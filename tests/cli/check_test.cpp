// assay check: a program without an operator, from its launch file to exit status and reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace {

class Check : public testing::Test {
 protected:
  Check() {
    const std::filesystem::path root = ASSAY_SOURCE_DIR;
    std::filesystem::copy_file(root / "tests/data/row_norm.ptx", folder / "row_norm.ptx");
    std::filesystem::copy_file(root / "examples/launch/row_norm.json", folder / "row_norm.json");
  }
  /// The example with `from` replaced by `to`, as bad.json.
  void change(const std::string& from, const std::string& to) {
    std::string text = read_file(folder / "row_norm.json");
    ASSERT_NE(text.find(from), text.npos) << from;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(folder / "bad.json") << text;
  }
  nlohmann::json json(const std::string& name) { return nlohmann::json::parse(read_file(folder / name)); }
  const ScratchFolder folder;
};

TEST_F(Check, TheExampleIsRight) {
  const Ran ran = run_assay("check row_norm.json --size columns=1000 --json r.json --precision", folder);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("PASS"), ran.out.npos);
  EXPECT_NE(ran.out.find("same bits: blocks and warps in descending order"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("replay: assay check row_norm.json --size columns=1000"), ran.out.npos) << ran.out;
  const nlohmann::json result = json("r.json");
  EXPECT_EQ(result["verdict"], "pass");
  EXPECT_EQ(result["program"]["written"].size(), 2u);
  EXPECT_FALSE(result["shadow"].is_null());
}

TEST_F(Check, TensorsThatAreTooSmallAreATrapWithItsLine) {
  change(R"("y": {"dtype": "fp32", "shape": ["rows", "columns"]})",
         R"("y": {"dtype": "fp32", "shape": ["rows", "columns - 1"]})");
  const Ran ran =
      run_assay("check bad.json --json r.json --sarif r.sarif --junit r.xml --report page", folder);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const nlohmann::json result = json("r.json");
  EXPECT_EQ(result["trap"]["kind"], "out-of-bounds");
  EXPECT_EQ(result["trap"]["where"]["line"], 23);
  const nlohmann::json place = json("r.sarif")["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["region"]["startLine"], 23) << place;
  EXPECT_NE(read_file(folder / "r.xml").find("<failure"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "page/index.html"));
}

TEST_F(Check, ValuesOfOnesOwnAreHeldAgainst) {
  ASSERT_EQ(run_assay("check row_norm.json --json r.json", folder).status, 0);
  std::filesystem::create_directory(folder / "right");
  // Three rows whose scale nobody computed so.
  std::ofstream(folder / "right/scale.npy", std::ios::binary)
      << std::string("\x93NUMPY\x01\x00\x46\x00", 10)
      << std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }            \n").substr(0, 70)
      << std::string(12, '\0');
  const Ran ran = run_assay("check row_norm.json --expect right --tolerance 0.1", folder);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("3 elements of scale beyond the bound"), ran.out.npos) << ran.out;
}

/// A struct of 24 bytes by value: { float* y; int n; float scale; int shift; }.
constexpr const char* scaled = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry scaled(.param .align 8 .b8 p[24]) {
  .reg .pred %q; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [p];
  ld.param.v2.u32 {%r0, %r1}, [p+8];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %q, %r2, %r0;
  @%q bra DONE;
  mov.b32 %f1, %r1;
  FURTHER
  mul.wide.u32 %d1, %r2, 4;
  add.s64 %d2, %d0, %d1;
  st.global.f32 [%d2], %f1;
DONE:
  ret;
}
)";

TEST_F(Check, ABytesOfAStructThatNoMemberHoldsIsNotTakenForZero) {
  std::ofstream(folder / "scaled.json") << R"({"ptx": "scaled.ptx",
    "tensors": {"y": {"dtype": "fp32", "shape": [4]}},
    "launches": [{"function": "scaled", "grid": 1, "block": 4,
                  "arguments": [{"struct": ["y", {"i32": 4}, {"f32": 1.5}]MORE}]}]})";
  const auto run = [&](const std::string& further, const std::string& more) {
    std::string ptx = scaled, launch = read_file(folder / "scaled.json");
    ptx.replace(ptx.find("FURTHER"), 7, further);
    launch.replace(launch.find("MORE"), 4, more);
    std::ofstream(folder / "scaled.ptx") << ptx;
    std::ofstream(folder / "run.json") << launch;
    return run_assay("check run.json", folder);
  };
  const std::string reads = "ld.param.u32 %r3, [p+16]; cvt.rn.f32.s32 %f2, %r3; add.rn.f32 %f1, %f1, %f2;";
  const Ran found = run(reads, R"(, "size": 24)");
  EXPECT_EQ(found.status, 1) << found.out << found.err;
  EXPECT_NE(found.out.find("depend on byte 16 of argument 0 (p), which no member of its struct covers"),
            found.out.npos)
      << found.out;
  EXPECT_EQ(run("", R"(, "size": 24)").status, 0) << "nobody reads them";
  const Ran short_one = run(reads, "");
  EXPECT_EQ(short_one.status, 2) << short_one.out;
  EXPECT_NE(short_one.err.find("16"), short_one.err.npos) << short_one.err;
}

/// The command of a "replay:" line, without "assay ".
std::string replay_of(const std::string& text) {
  const std::string mark = "assay ";
  const size_t at = text.find(mark, text.find("replay: "));
  return at == text.npos ? "" : text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
}

TEST_F(Check, TheLineThatFuzzPrintsRepeatsTheFinding) {
  std::filesystem::create_directory(folder / "two words");
  change(R"("shape": ["rows"]})", R"j("shape": ["min(rows, 2)"]})j");
  std::filesystem::rename(folder / "bad.json", folder / "two words/bad.json");
  const Ran found = run_assay("fuzz 'two words/bad.json' --ptx row_norm.ptx --cases 30 --seed 3", folder);
  ASSERT_EQ(found.status, 1) << found.out << found.err;
  const size_t at = found.out.find("assay check");
  ASSERT_NE(at, found.out.npos) << found.out;
  const std::string line = found.out.substr(at + 6, found.out.find('\n', at) - at - 6);
  const Ran again = run_assay(line, folder);
  EXPECT_EQ(again.status, 1) << line << again.out << again.err;
  EXPECT_NE(again.out.find("past the end of scale"), again.out.npos) << again.out;
  EXPECT_EQ(run_assay(replay_of(again.out), folder).status, 1) << again.out;
}

TEST_F(Check, ReplayOfALaunchFileIsItsCheck) {
  const std::string options = "row_norm.json --size columns=40 --seed 4 --arch sm_80";
  const Ran check = run_assay("check " + options, folder), replay = run_assay("replay " + options, folder);
  EXPECT_EQ(replay.status, 0) << replay.err;
  EXPECT_EQ(replay_of(replay.out), "check " + options);
  EXPECT_EQ(replay_of(check.out), "check " + options);
}

TEST_F(Check, TraceNamesWhatIsNotFiniteOrFurthestFromExact) {
  const Ran finite = run_assay("trace row_norm.json --size columns=37", folder);
  EXPECT_EQ(finite.status, 0) << finite.err;
  EXPECT_NE(finite.out.find("behind y[rows=2,columns=30]"), finite.out.npos) << finite.out;
  EXPECT_NE(finite.out.find("row_norm.cu:23"), finite.out.npos) << finite.out;
  const Ran asked = run_assay("trace row_norm.json --size columns=37 --element 'y[1,3]'", folder);
  EXPECT_NE(asked.out.find("behind y[rows=1,columns=3]"), asked.out.npos) << asked.out << asked.err;
  EXPECT_EQ(replay_of(asked.out), "trace row_norm.json --size columns=37 --element 'y[1,3]'");
  change(R"({"f32": 1e-6})", R"({"f32": -1e30})");
  const Ran origin = run_assay("trace bad.json --json t.json", folder);
  EXPECT_EQ(origin.status, 1) << origin.out << origin.err;
  EXPECT_EQ(json("t.json")["origin"]["where"]["line"], 21) << origin.out;
  EXPECT_EQ(run_assay("trace row_norm.json --at row_norm.cu:20 --warp 1", folder).status, 0);
  for (const char* wrong : {"trace row_norm.json -T 4", "trace row_norm.json --element z[0]",
                            "trace gla.chunk --size n=4", "replay x/B1 --vary x=spike"})
    EXPECT_EQ(run_assay(wrong, folder).status, 2) << wrong;
}

TEST_F(Check, MutantsOfALaunchFileReplay) {
  const Ran run = run_assay("mutate row_norm.json --mutants 40 --json m.json", folder);
  ASSERT_EQ(run.status, 0) << run.err;
  int replayed = 0;
  const nlohmann::json result = json("m.json");
  for (const nlohmann::json& mutant : result["mutants"]) {
    if (mutant["outcome"] != "killed" || ++replayed > 3) continue;
    const std::string options = "row_norm.json " + mutant["token"].get<std::string>() + " --mutant " +
                                mutant["id"].get<std::string>();
    const Ran again = run_assay("check " + options, folder);
    EXPECT_NE(again.status, 2) << options << again.err;
    EXPECT_NE(replay_of(again.out).find("--mutant " + mutant["id"].get<std::string>()), std::string::npos);
  }
  EXPECT_GE(replayed, 3);
  EXPECT_EQ(run_assay("check row_norm.json --mutant m0+1+nothing", folder).status, 2);
  EXPECT_EQ(run_assay("mutate row_norm.json --direction backward", folder).status, 2);
  EXPECT_EQ(run_assay("mutate gla.chunk --tolerance 1", folder).status, 2);
}

TEST_F(Check, SomeBlocksAreSaidToBeSome) {
  const Ran ran = run_assay("check row_norm.json --blocks 1 --json r.json", folder);
  EXPECT_EQ(json("r.json")["partial"], "blocks 1 of every launch ran, once") << ran.out << ran.err;
  EXPECT_NE(ran.out.find("replay: assay check row_norm.json --blocks 1"), ran.out.npos) << ran.out;
}

TEST_F(Check, AFolderIsFuzzedLikeItsLaunchFile) {
  std::filesystem::create_directory(folder / "in");
  std::filesystem::copy_file(folder / "row_norm.json", folder / "in/launch.json");
  std::filesystem::copy_file(folder / "row_norm.ptx", folder / "in/row_norm.ptx");
  const Ran ran = run_assay("fuzz in --cases 5 --seed 1", folder);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("pass  5 cases"), ran.out.npos) << ran.out;
}

TEST_F(Check, SizesThatAreNotMeantAreNotRun) {
  change(R"("ptx":)", R"("accepts": "columns % 8 == 0", "ptx":)");
  EXPECT_EQ(run_assay("check bad.json", folder).status, 0);
  const Ran ran = run_assay("check bad.json --size columns=7", folder);
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_NE(ran.err.find("\"accepts\" leaves these sizes out"), ran.err.npos) << ran.err;
}

TEST_F(Check, AnOutputMayBeSaidToBeWrittenInPart) {
  change(R"("grid": "rows")", R"("grid": "rows - 1")");
  EXPECT_EQ(run_assay("check bad.json --partly y", folder).status, 1) << "scale is not written whole either";
  const Ran ran = run_assay("check bad.json --partly y,scale", folder);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("replay: assay check bad.json --partly y,scale"), ran.out.npos) << ran.out;
  EXPECT_EQ(run_assay(replay_of(ran.out), folder).status, 0);
}

TEST_F(Check, WhatCannotBeReadIsOneLineAndStatusTwo) {
  change(R"("function": "row_norm")", R"("function": "col_norm")");
  const std::pair<const char*, const char*> rows[] = {
      {"check bad.json", "no PTX file has an entry \"col_norm\"; there are: row_norm"},
      {"check absent.json", "absent.json: cannot be opened"},
      {"check row_norm.ptx", "PTX alone does not say what to launch"},
      {"check", "name a launch file"},
      {"check row_norm.json --size columns", "expected NAME=NUMBER"},
      {"check row_norm.json --size depth=3", "there is no size \"depth\"; there are: columns, rows"},
      {"check row_norm.json --size rows=0", "/launches/0/grid"},
      {"check row_norm.json --blocks 99", "blocks '99': no launch has one of them"},
      {"check row_norm.json --blocks 0,99",
       "blocks '0,99': no launch has 99; the last one of the largest is 2"},
      {"check row_norm.json --checks race", "unknown check 'race'"},
      {"check row_norm.json --expect row_norm.json", "row_norm.json"},
      {"check row_norm.json --partly z", "--partly: unknown output 'z'"},
      {"check row_norm.json --tolerance 1e-5", "--tolerance requires --expect"},
      {"check row_norm.json --expect ''", "--expect: an empty value"},
      {"fuzz row_norm.json --cases 1 --db f.db", "--db: findings of launch files are not kept in a database"},
      {"fuzz row_norm.json --cases 1 --database /nonexistent/x.db", "--db: findings of launch files"},
      {"trace row_norm.json --element ''", "--element: an empty value"},
      {"trace row_norm.json --element 'y[0'",
       "element 'y[0': it does not end with ']'; the last one is y[2,199]"},
      {"trace row_norm.json --element y[0,999]", "'999' is not below 200; the last one is y[2,199]"},
  };
  for (const auto& [arguments, message] : rows) {
    const Ran ran = run_assay(arguments, folder);
    EXPECT_EQ(ran.status, 2) << arguments << ran.out;
    EXPECT_NE(ran.err.find(message), ran.err.npos) << arguments << ": " << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

}  // namespace
}  // namespace assay
