// Programs that are no kernel of an operator: structs by value, buffers that are read and written or share
// bytes, fills and copies; run, checked, shadowed and recorded.
#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/base/program/steps.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/shadow_run.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

constexpr int64_t n = 64;

/// accumulate: y[i] += a x[i] for i < n, of a struct {x, y, a, n}. meet: every thread stores to the same
/// word.
const char* kText = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry accumulate(.param .align 8 .b8 p[24]) {
  .reg .pred %p;
  .reg .f32 %f<5>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  ld.param.u64 %rd2, [p+8];
  ld.param.f32 %f1, [p+16];
  ld.param.u32 %r1, [p+20];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r2, 32, %r3;
  setp.ge.s32 %p, %r4, %r1;
  @%p bra DONE;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f4;
DONE:
  ret;
}
.visible .entry meet(.param .u64 to) {
  .reg .b32 %r;
  .reg .b64 %rd;
  ld.param.u64 %rd, [to];
  mov.u32 %r, %tid.x;
  st.global.u32 [%rd], %r;
  ret;
}
.visible .entry load_tiles(.param .align 64 .b8 map[128]) { ret; }
)";

struct Accumulation {
  PointerArgument x, y;
  float a = 0.1f;
  int32_t count = n;

  operator Argument() const { return Argument::of_bytes(24).put(0, x).put(8, y).put(16, a).put(20, count); }
};

Launch launch(const std::string& function, std::vector<Argument> arguments) {
  return {.module = "m",
          .function = function,
          .grid = {2, 1, 1},
          .block = {32, 1, 1},
          .arguments = std::move(arguments)};
}

Tensor ramp(const std::string& name, double step) {
  Tensor tensor(name, Dtype::fp32, {{"T", n}});
  for (int64_t i = 0; i < n; ++i) tensor.set(i, step * static_cast<double>(i + 1));
  return tensor;
}

TensorMap given() {
  return {{"x", ramp("x", 0.3)}, {"y", ramp("y", 0.7)}};
}

/// y += 0.1 x.
Program in_place() {
  Program program;
  program.name = "test";
  program.modules = {{"m", "test.ptx", std::make_shared<const std::string>(kText)}};
  program.outputs = {{"y", Dtype::fp32, {{"T", n}}}};
  program.launches = {launch("accumulate", {Accumulation{{"x"}, {"y"}}})};
  return program;
}

float sum_at(int64_t i) {
  const TensorMap inputs = given();
  return std::fmaf(0.1f, static_cast<float>(inputs.at("x").value(i)),
                   static_cast<float>(inputs.at("y").value(i)));
}

MachineOptions machine() {
  return {.arch = "sm_90", .threads = 1};
}

void expect_sums(const Tensor& y) {
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.value(i), sum_at(i)) << i;
}

std::vector<CheckFinding> findings_of(const Program& program, const TensorMap& inputs) {
  return run_checked(program, inputs, machine(), {}).findings;
}

std::string refusal_of(const Program& program) {
  try {
    run(program, given(), machine());
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Program, AStructByValueHoldsPointersAndNumbers) {
  const Outcome outcome = run(in_place(), given(), machine());
  ASSERT_FALSE(outcome.trap);
  expect_sums(outcome.outputs.at("y"));
}

TEST(Program, ABufferMayBeReadAndWritten) {
  const Program program = in_place();
  const Outcome outcome = run(program, given(), machine());
  EXPECT_TRUE(outcome.changed_inputs.empty()) << "y is said to be written";
  EXPECT_TRUE(findings_of(program, given()).empty());
  const ShadowReport shadow = run_shadow(program, given(), machine());
  ASSERT_EQ(shadow.outputs.size(), 1u);
  EXPECT_EQ(shadow.outputs[0].followed, n);
  EXPECT_GT(shadow.outputs[0].max_error, 0);
}

TEST(Program, AnInputThatIsChangedWithoutSayingSoIsReportedAndShadowed) {
  Program program = in_place();
  program.outputs.clear();
  const Outcome outcome = run(program, given(), machine());
  ASSERT_TRUE(outcome.changed_inputs.contains("y"));
  expect_sums(outcome.changed_inputs.at("y"));
  const ShadowReport shadow = run_shadow(program, given(), machine());
  ASSERT_EQ(shadow.outputs.size(), 1u);
  EXPECT_EQ(shadow.outputs[0].name, "y");
  EXPECT_EQ(shadow.outputs[0].followed, n);
}

TEST(Program, BuffersMayLieInOneStorage) {
  Program program = in_place();
  program.workspaces = {{"store", 2048}};
  program.aliases = {{"x", "store", 512}, {"y", "store", 1024}};
  const Outcome outcome = run(program, given(), machine());
  ASSERT_FALSE(outcome.trap);
  expect_sums(outcome.outputs.at("y"));
  EXPECT_TRUE(findings_of(program, given()).empty());
  const ShadowReport shadow = run_shadow(program, given(), machine());
  EXPECT_EQ(shadow.outputs.at(0).followed, n);

  // The same bytes through the storage's own name.
  program.launches[0].arguments[0] = Accumulation{{"store", 512}, {"store", 1024}};
  expect_sums(run(program, given(), machine()).outputs.at("y"));
  // One element further on: what was never written, unless it is x or y.
  program.launches[0].arguments[0] = Accumulation{{"store", 512 + 4}, {"store", 1024}};
  const std::vector<CheckFinding> findings = findings_of(program, given());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].element, "y[t=63]");
}

TEST(Program, AnOutputMayLieInAnInput) {
  Program program = in_place();
  program.outputs = {{"tail", Dtype::fp32, {{"T", 4}}}};
  program.aliases = {{"tail", "y", 4 * (n - 4)}};
  const Outcome outcome = run(program, given(), machine());
  EXPECT_TRUE(outcome.changed_inputs.empty());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(outcome.outputs.at("tail").value(i), sum_at(n - 4 + i));
  EXPECT_EQ(run_shadow(program, given(), machine()).outputs.at(0).followed, 4);
}

TEST(Program, ANonfiniteValueIsTracedThroughABufferThatIsReadAndWritten) {
  TensorMap inputs = given();
  inputs.at("x").set(5, INFINITY), inputs.at("y").set(5, -INFINITY);
  for (const bool together : {false, true}) {
    Program program = in_place();
    if (together) program.workspaces = {{"store", 512}}, program.aliases = {{"y", "store", 256}};
    Recording recording;
    run_recorded(program, inputs, machine(), &recording);
    const Carrier carrier = recording.carrier("y", 5);
    ASSERT_GE(carrier.event, 0);
    EXPECT_TRUE(recording.event(carrier.event).born);
    const int64_t x = recording.input_names[0] == "x" ? 0 : 1;
    EXPECT_EQ(carrier.inputs, (std::vector<int64_t>{std::min(x << 40, (1 - x) << 40) | 5,
                                                    std::max(x << 40, (1 - x) << 40) | 5}));
  }
}

TEST(Program, RacesInABufferThatIsReadAndWrittenAreFound) {
  Program program = in_place();
  program.launches = {launch("meet", {PointerArgument{"y"}})};
  const std::vector<CheckFinding> findings = findings_of(program, given());
  ASSERT_EQ(findings.size(), 2u) << "within a block, and between the two";
  for (const CheckFinding& finding : findings) EXPECT_EQ(finding.element, "y[t=0]") << name_of(finding.kind);
}

TEST(Program, FillsAndCopiesAreSteps) {
  Program program = in_place();
  program.outputs = {{"z", Dtype::fp32, {{"T", n + 8}}}};
  add_fill(program, {"z"}, 32, 0x3f800000, 4);
  add_copy(program, {"y"}, {"z", 32}, 4 * n);
  const Outcome outcome = run(program, given(), machine());
  ASSERT_FALSE(outcome.trap);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(outcome.outputs.at("z").value(i), 1);
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(outcome.outputs.at("z").value(8 + i), sum_at(i));
  EXPECT_TRUE(findings_of(program, given()).empty());
  EXPECT_EQ(run_shadow(program, given(), machine()).outputs.at(0).followed, n) << "through the copy";

  program.launches.erase(program.launches.begin() + 1);
  const std::vector<CheckFinding> unfilled = findings_of(program, given());
  ASSERT_EQ(unfilled.size(), 1u);
  EXPECT_EQ(unfilled[0].element, "z[t=0]");
}

TEST(Program, FillsAndCopiesOfOddBytes) {
  for (const int width : {1, 2, 4}) {
    Program program = in_place();
    program.launches.clear();
    program.outputs = {{"z", Dtype::u8, {{"T", 16}}}};
    add_fill(program, {"z"}, 16, 0x44332211, width);
    add_copy(program, {"x", 1}, {"z", 8}, width);
    const Tensor z = run(program, given(), machine()).outputs.at("z");
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(z.bits(i), 0x11u * static_cast<uint64_t>(i % width + 1)) << width;
    for (int64_t i = 0; i < width; ++i)
      EXPECT_EQ(z.bits(8 + i), static_cast<uint64_t>(given().at("x").data[static_cast<size_t>(1 + i)]))
          << width;
  }
}

TEST(Program, WrongArgumentsAreNamed) {
  Program program = in_place();
  program.launches[0].arguments[0] = Argument::of_bytes(20);
  EXPECT_EQ(refusal_of(program),
            "test: launch of accumulate: argument 0 (p) has 20 bytes, the entry expects 24");
  program.launches = {launch("meet", {1.0})};
  EXPECT_EQ(refusal_of(program), "test: launch of meet: argument 0 (to) is a float, the entry expects .u64");
  program.launches = {launch("meet", {Argument::of_bytes(8)})};
  program.launches[0].arguments[0].relocations.push_back({4, {"x"}, {}});
  EXPECT_EQ(refusal_of(program),
            "test: launch of meet: argument 0 (to): 8 bytes for x from byte 4 on do not fit into its 8");
}

TEST(Program, ATensorMapIsRefusedWhereADriverWouldRefuseIt) {
  Program program = in_place();
  const TileMap map{.element = TileMap::Element::f32, .sizes = {n}, .strides = {}, .box = {16}, .steps = {1}};
  program.launches = {launch("load_tiles", {Argument::of(PointerArgument{"x"}, map)})};
  EXPECT_EQ(refusal_of(program), "accepted");
  program.launches[0].arguments[0].relocations[0].tile_map->box[0] = 257;
  EXPECT_EQ(refusal_of(program),
            "test: launch of load_tiles: argument 0 (map) holds a tensor map with a box that is not 1 to 256 "
            "long");
  program.launches[0].arguments[0].relocations[0].tile_map->steps.clear();
  EXPECT_EQ(refusal_of(program),
            "test: launch of load_tiles: argument 0 (map) holds a tensor map of 1 sizes, 0 strides, 1 box "
            "sizes and 0 "
            "steps; 1 to 5 axes have one of each, the innermost no stride");
}

TEST(Recording, FollowsAtomicsOnABufferThatIsTooLargeToBeHeld) {
  TensorMap inputs;
  Program program = plan_of({.body = "atom.global.add.u32 %d, [%pd], 7;"}, inputs);
  program.outputs[0].axes = {{"T", kLargestHeld / 4 + 1}};
  program.blocks = "0";
  Recording recording;
  const Outcome outcome = run_recorded(program, inputs, {}, &recording);
  ASSERT_FALSE(outcome.trap);
  EXPECT_EQ(outcome.outputs.at("d").bits(3), 0xffffffffu) << "the old value, stored over the sum";
}

}  // namespace
}  // namespace assay::vm
