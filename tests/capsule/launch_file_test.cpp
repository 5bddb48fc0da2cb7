#include "src/capsule/launch_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"

namespace assay {
namespace launch_file_test {

constexpr const char* kPtx = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry _Z3addPfi(.param .u64 px, .param .u32 pn) {
  .reg .b64 %x, %at; .reg .b32 %t, %n, %c; .reg .f32 %f; .reg .pred %p;
  ld.param.u64 %x, [px]; ld.param.u32 %n, [pn];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.s32 %t, %c, 32, %t;
  setp.ge.u32 %p, %t, %n; @%p bra OUT;
  mul.wide.u32 %at, %t, 4; add.s64 %x, %x, %at;
  ld.global.f32 %f, [%x]; add.rn.f32 %f, %f, 0f3F800000; st.global.f32 [%x], %f;
OUT: ret;
}
.const .align 4 .b8 weights[160];
.visible .entry weigh(.param .u64 px) {
  .reg .b64 %x, %w, %at; .reg .b32 %t; .reg .f32 %f;
  ld.param.u64 %x, [px]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4; add.s64 %x, %x, %at;
  mov.u64 %w, weights; add.s64 %w, %w, %at; ld.const.f32 %f, [%w]; st.global.f32 [%x], %f; ret;
}
.visible .entry _Z5twiceIfEvPT_(.param .u64 px) { ret; }
.visible .entry _Z5twiceIdEvPT_(.param .u64 px) { ret; }
)";

class LaunchFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  LaunchFile file(const std::string& text) {
    write("k.ptx", kPtx);
    return LaunchFile(write("l.json", text), {});
  }
  std::string complaint(const std::string& text, const std::map<std::string, int64_t>& sizes = {}) {
    try {
      file(text).make(sizes, 1);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "nothing";
  }
};

constexpr const char* kGood = R"j({"ptx": "k.ptx", "sizes": {"n": {"value": 40, "from": 1, "to": 100}},
  "tensors": {"x": {"dtype": "fp32", "shape": ["n"], "values": "range"}},
  "launches": [{"fill": {"pointer": "x", "offset": 4}, "bytes": 4},
               {"function": "add", "grid": "ceil_div(n, 32)", "block": 32,
                "arguments": ["x", {"i32": "n"}]}]})j";

TEST_F(LaunchFiles, MakeAProgramThatRuns) {
  const LaunchFile launch = file(kGood);
  ASSERT_EQ(launch.sizes().size(), 1u);
  EXPECT_TRUE(launch.sizes()[0].varies());
  const Capsule capsule = launch.make({}, 1);
  EXPECT_EQ(capsule.program.launches.back().grid[0], 2u);
  const Outcome outcome = vm::run(capsule.program, capsule.inputs, {});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  const Tensor& x = outcome.changed_inputs.at("x");
  EXPECT_EQ(x.value(0), 1);
  EXPECT_EQ(x.value(1), 1);  // filled with zeros first
  EXPECT_EQ(x.value(39), 40);
}

TEST_F(LaunchFiles, SizesAreChosenByName) {
  EXPECT_EQ(file(kGood).make({{"n", 65}}, 1).program.launches.back().grid[0], 3u);
  EXPECT_NE(complaint(kGood, {{"m", 1}}).find("there is no size \"m\"; there are: n"), std::string::npos);
}

TEST_F(LaunchFiles, ASizeMayFollowFromOthers) {
  std::string text = kGood;
  text.replace(text.find("\"sizes\": {"), 10,
               R"j("sizes": {"blocks": "ceil_div(n, 32)", "one": {"value": 1}, )j");
  text.replace(text.find("\"grid\": \"ceil_div(n, 32)\""), 25, R"("grid": "blocks * one")");
  EXPECT_EQ(file(text).make({{"n", 65}}, 1).program.launches.back().grid[0], 3u);
  EXPECT_NE(complaint(text, {{"blocks", 1}}).find("there is no size \"blocks\"; there are: n, one"),
            std::string::npos);
  text.replace(text.find("ceil_div(n, 32)"), 15, "blocks + 1");
  EXPECT_NE(complaint(text).find("at /sizes/blocks: \"blocks + 1\" cannot be evaluated"), std::string::npos);
}

TEST_F(LaunchFiles, ATensorMayBeAVariableOfTheModule) {
  const std::string text = R"j({"ptx": "k.ptx", "tensors": {
    "w": {"dtype": "fp32", "shape": [40], "values": "range", "variable": "weights"},
    "x": {"dtype": "fp32", "shape": [40]}},
    "launches": [{"function": "weigh", "grid": 1, "block": 40, "arguments": ["x"]}]})j";
  const Capsule capsule = file(text).make({}, 1);
  const Outcome outcome = vm::run(capsule.program, capsule.inputs, {});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(outcome.outputs.at("x").value(39), 39);
  std::string wrong = text;
  wrong.replace(wrong.find("\"shape\": [40]"), 13, "\"shape\": [41]");
  EXPECT_NE(complaint(wrong).find("the variable \"weights\" has 160 bytes, the tensor 164"),
            std::string::npos);
  wrong = text;
  wrong.replace(wrong.find("weights"), 7, "weight_");
  EXPECT_NE(complaint(wrong).find("no PTX file has a variable \"weight_\""), std::string::npos);
}

TEST_F(LaunchFiles, EntriesAreFoundByTheirNamesInEitherLanguage) {
  const auto with = [](const std::string& name) {
    return R"j({"ptx": "k.ptx", "launches": [{"function": ")j" + name +
           R"j(", "grid": 1, "block": 1, "arguments": [null]}]})j";
  };
  EXPECT_EQ(complaint(with("_Z5twiceIfEvPT_")), "nothing");
  EXPECT_EQ(complaint(with("void twice<double>(double*)")), "nothing");
  EXPECT_EQ(complaint(with("twice<double>")), "nothing");
  EXPECT_NE(complaint(with("twice")).find("several entries are called \"twice\""), std::string::npos);
  EXPECT_NE(
      complaint(with("thrice")).find("no PTX file has an entry \"thrice\"; there are: add(float*, int)"),
      std::string::npos);
}

TEST_F(LaunchFiles, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_NE(complaint("{").find("no launch file, which is JSON"), std::string::npos);
  EXPECT_NE(complaint("{}").find("key \"ptx\" is missing"), std::string::npos);
  EXPECT_NE(complaint(R"({"ptx": "absent.ptx"})").find("absent.ptx: cannot be opened"), std::string::npos);
  EXPECT_NE(complaint(R"({"ptx": "k.ptx"})").find("key \"launches\" is missing"), std::string::npos);
  EXPECT_NE(
      complaint(
          R"({"ptx": "k.ptx", "launches": [{"function": "add", "grid": 0, "block": 1, "arguments": []}]})")
          .find("at /launches/0/grid"),
      std::string::npos);
  EXPECT_NE(complaint(R"({"ptx": "k.ptx", "launches": [{"fill": "y"}]})").find("no tensor \"y\""),
            std::string::npos);
  EXPECT_NE(complaint(R"({"ptx": "k.ptx", "tensor": {}, "launches": []})").find("unknown key \"tensor\""),
            std::string::npos);
}

}  // namespace launch_file_test
}  // namespace assay
