#include "kernels/foreign.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/views/gather_plan.h"
#include "reference/domain.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using nlohmann::json;

const std::string kPtx = ASSAY_SOURCE_DIR "/tests/data/gla_naive.ptx";
const std::string kPlan = ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json";
const std::string kGradients = ASSAY_SOURCE_DIR "/examples/strangers_gla/plan_with_gradients.json";

Kernel load(const json& plan, const std::string& ptx) {
  const auto path =
      std::filesystem::temp_directory_path() / ("assay_foreign_" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << plan.dump();
  struct Remove {
    std::filesystem::path path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  return load_foreign_kernel(ptx, path);
}

/// Loads the example's PTX under its plan after `patch` (RFC 6902).
Kernel load_patched(const json& patch) {
  return load(json::parse(std::ifstream(kPlan)).patch(patch), kPtx);
}

/// Both examples as one plan, of two PTX files, after `patch`: it goes forward and backward.
Kernel load_both_ways(const json& patch = json::array()) {
  json plan = json::parse(std::ifstream(kPlan));
  const json gradients = json::parse(std::ifstream(kGradients));
  for (const char* key : {"workspaces", "backward_launches"}) plan[key] = gradients[key];
  plan["launches"][0]["ptx"] = "gla_naive.ptx";
  for (json& launch : plan["backward_launches"])
    if (!launch.contains("fill")) launch["ptx"] = "gla_naive_backward.ptx";
  return load(plan.patch(patch), ASSAY_SOURCE_DIR "/tests/data");
}

Case small_case() {
  Case c;
  c.kernel = "gla_naive";
  c.B = 2, c.T = 100, c.H = 3, c.K = 60, c.V = 70;
  return c;
}

ResolvedCase resolved(const Case& c) {
  return resolve_unchecked(c, find_operator("gla"));
}
Program plan_of(const Kernel& kernel, const Case& c) {
  return kernel.plan(resolved(c), {});
}

TEST(ForeignKernel, ExampleSpeaksForItself) {
  const Kernel kernel = load_foreign_kernel(kPtx, kPlan);
  EXPECT_EQ(kernel.name, "gla_naive");
  EXPECT_EQ(kernel.operator_name, "gla");
  EXPECT_EQ(kernel.limits.max_K, 128);
  EXPECT_EQ(kernel.limits.dtypes, (std::vector{Dtype::bf16, Dtype::fp16, Dtype::fp32}));
  EXPECT_EQ(kernel.limits.gate_dtypes, std::vector{Dtype::fp32});
  EXPECT_EQ(kernel.resume_granularity, 1);
  EXPECT_FALSE(kernel.exponents_nonpositive);
  EXPECT_EQ(kernel.arithmetic(resolved(small_case())).output_roundoff, 0x1p-8);
  std::ifstream plan(kPlan);
  EXPECT_LE(std::count(std::istreambuf_iterator<char>(plan), {}, '\n'), 40);
}

TEST(ForeignKernel, PlanFollowsTheSizesOfTheCase) {
  const Kernel kernel = load_foreign_kernel(kPtx, kPlan);
  const Program plan = plan_of(kernel, small_case());
  ASSERT_EQ(plan.launches.size(), 1u);
  const Launch& launch = plan.launches[0];
  EXPECT_EQ(launch.function, "gla_naive_bf16");
  EXPECT_EQ(launch.grid, (std::array<uint32_t, 3>{2, 3, 2}));
  EXPECT_EQ(launch.block, (std::array<uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(launch.shared_bytes, 720u);
  ASSERT_EQ(launch.arguments.size(), 13u);
  EXPECT_EQ(pointer_of(launch.arguments[0])->buffer, "q");
  EXPECT_EQ(pointer_of(launch.arguments[4])->buffer, "");  // no initial state
  EXPECT_EQ(pointer_of(launch.arguments[7])->buffer, "");  // not packed
  EXPECT_EQ(integer_of(launch.arguments[8]), 100);
  EXPECT_EQ(static_cast<float>(*real_of(launch.arguments[12])),
            static_cast<float>(find_operator("gla").default_scale(sizes_of(small_case()))));
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[0].dtype, Dtype::bf16);
  EXPECT_EQ(plan.outputs[0].axes, (std::vector<Axis>{{"B", 2}, {"T", 100}, {"H", 3}, {"V", 70}}));
  EXPECT_EQ(plan.outputs[1].dtype, Dtype::fp32);
  EXPECT_TRUE(plan.constants.empty());
}

TEST(ForeignKernel, PackedSequencesPassTheirOffsets) {
  Case c = small_case();
  c.B = 1;
  c.cu_seqlens = {0, 15, 15, 100};
  const Program plan = plan_of(load_foreign_kernel(kPtx, kPlan), c);
  EXPECT_EQ(plan.launches.at(0).grid, (std::array<uint32_t, 3>{2, 3, 3}));
  ASSERT_EQ(plan.constants.size(), 1u);
  EXPECT_EQ(plan.constants[0].name, "cu_seqlens");
  const auto offsets = plan.constants[0].as<const int64_t>();
  EXPECT_EQ(std::vector(offsets.begin(), offsets.end()), c.cu_seqlens);
  EXPECT_EQ(pointer_of(plan.launches[0].arguments[7])->buffer, "cu_seqlens");
}

TEST(ForeignKernel, AbsentInputIsNullOrZerosAsThePlanSays) {
  Case c = small_case();
  c.without = {"g"};
  EXPECT_EQ(pointer_of(plan_of(load_foreign_kernel(kPtx, kPlan), c).launches[0].arguments[3])->buffer, "");
  const Kernel zeros = load_patched(json::parse(
      R"([{"op": "replace", "path": "/launches/0/arguments/3", "value":
        {"pointer": "g", "absent": "zeros"}}])"));
  const Program plan = plan_of(zeros, c);
  ASSERT_EQ(plan.constants.size(), 1u);
  EXPECT_EQ(plan.constants[0].name, pointer_of(plan.launches[0].arguments[3])->buffer);
  EXPECT_EQ(plan.constants[0].size(), 2 * 100 * 3 * 60);
  EXPECT_EQ(plan_of(zeros, small_case()).constants.size(), 0u);
}

TEST(ForeignKernel, RefusesTheCasesThatItsPlanCannotRun) {
  Case packed = small_case();
  packed.B = 1, packed.cu_seqlens = {0, 100};
  Case with_state = small_case();
  with_state.initial_state = true;
  Case exact = small_case();
  exact.values = "exact", exact.decay = "none";
  struct Row {
    const char* patch;
    Case c;
    const char* reason;
  };
  const Row rows[] = {
      {R"([{"op": "replace", "path": "/launches/0/arguments/7", "value": null}])", packed,
       "takes no packed sequences"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/4", "value": null}])", with_state,
       "takes no initial_state"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/3", "value": null}])", small_case(),
       "takes no g"},
      {R"([{"op": "add", "path": "/accepts", "value": "K % 16 == 0"}])", small_case(),
       "accepts only cases where K % 16 == 0"},
      {R"([{"op": "add", "path": "/formula", "value": false}])", exact, "takes no exact values"},
  };
  for (const Row& row : rows) {
    const Kernel kernel = load_patched(json::parse(row.patch));
    EXPECT_NE(kernel.refuses(resolved(row.c)).find(row.reason), std::string::npos)
        << kernel.refuses(resolved(row.c));
    EXPECT_THROW(plan_of(kernel, row.c), BadInput);
    EXPECT_EQ(load_foreign_kernel(kPtx, kPlan).refuses(resolved(row.c)), "") << row.patch;
  }
}

TEST(ForeignKernel, LimitsAndWhatIsJudgedAreThePlans) {
  const Kernel kernel = load_patched(json::parse(R"([{"op": "add", "path": "/limits/rate_max", "value": 1},
                      {"op": "add", "path": "/formula", "value": false}])"));
  EXPECT_EQ(kernel.limits.rate_max, 1);
  EXPECT_EQ(largest_rate(kernel), kLargestRate);  // gla has no rates, and cases of it say nothing of them
  Kernel delta = kernel;
  delta.operator_name = "delta_rule";
  EXPECT_EQ(largest_rate(delta), 1);
  EXPECT_FALSE(kernel.has_formula);
  const Kernel plain = load_foreign_kernel(kPtx, kPlan);
  EXPECT_EQ(plain.limits.rate_max, 2);
  EXPECT_TRUE(plain.has_formula);
}

TEST(ForeignKernel, StridesOfViewsAreKnownWhereThePlanReadsThem) {
  Case c = small_case();
  c.layout = "q=heads-first,k=joined";
  TensorMap inputs;
  for (const char* name : {"q", "k"})
    inputs[name] = Tensor(name, Dtype::bf16, {{"B", 2}, {"T", 100}, {"H", 3}, {"K", 60}});
  const json reading = json::parse(
      R"([{"op": "replace", "path": "/launches/0/arguments/8", "value": {"i32": "stride_q_T"}},
          {"op": "replace", "path": "/launches/0/arguments/9", "value": {"i32": "stride_k_T"}},
          {"op": "add", "path": "/reads_views", "value": ["q"]}])");
  const Kernel kernel = load_patched(reading);
  const Program plan = program_with_views(kernel, resolve(c, find_operator("gla")), inputs);
  ASSERT_EQ(plan.launches.size(), 2u) << "k alone is copied";
  EXPECT_EQ(plan.launches[0].function, "gather_16");
  EXPECT_EQ(pointer_of(plan.launches[0].arguments[0])->buffer, "k");
  const auto& arguments = plan.launches[1].arguments;
  EXPECT_EQ(pointer_of(arguments[0])->buffer, "q");
  EXPECT_EQ(pointer_of(arguments[1])->buffer, "copy of k");
  EXPECT_EQ(integer_of(arguments[8]), 60) << "of the view";
  EXPECT_EQ(integer_of(arguments[9]), 3 * 60) << "of the copy";
  EXPECT_EQ(plan.layouts.size(), 2u);
}

TEST(ForeignKernel, TensorsLieAsThePlanSays) {
  const Case c = small_case();
  const json heads_first = json::parse(
      R"([{"op": "replace", "path": "/launches/0/arguments/8", "value": {"i32": "stride_q_T"}},
          {"op": "replace", "path": "/launches/0/arguments/9", "value": {"i32": "stride_q_H"}},
          {"op": "add", "path": "/layouts",
           "value": {"q": ["B", "H", "T", "K"], "o": ["B", "H", "T", "V"]}}])");
  const Program plan = program_with_views(load_patched(heads_first), resolve(c, find_operator("gla")), {});
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_EQ(pointer_of(plan.launches[0].arguments[0])->buffer, "q");
  const auto& arguments = plan.launches[1].arguments;
  EXPECT_EQ(pointer_of(arguments[0])->buffer, "copy of q");
  EXPECT_EQ(pointer_of(arguments[5])->buffer, "copy of o");
  EXPECT_EQ(integer_of(arguments[8]), 60);
  EXPECT_EQ(integer_of(arguments[9]), 100 * 60);
  EXPECT_EQ(pointer_of(plan.launches[2].arguments[1])->buffer, "o");
}

std::vector<std::string> functions_of(const Program& plan) {
  std::vector<std::string> functions;
  for (const Launch& launch : plan.launches) functions.push_back(launch.function);
  return functions;
}

using Strings = std::vector<std::string>;
const Strings kBackward = {"fill_32", "gla_naive_rows_bf16", "fill_32", "gla_naive_columns_bf16"};

TEST(ForeignKernel, GradientsAreAPlansToo) {
  const Kernel kernel =
      load_foreign_kernel(ASSAY_SOURCE_DIR "/tests/data/gla_naive_backward.ptx", kGradients);
  EXPECT_EQ(directions_of(kernel), std::vector{Direction::backward});
  Case c = small_case();
  c.direction = Direction::backward, c.without = {"g"};
  const Program plan = plan_of(kernel, c);
  EXPECT_EQ(functions_of(plan), kBackward);
  Strings outputs;
  for (const ProgramOutput& output : plan.outputs) outputs.push_back(output.name);
  EXPECT_EQ(outputs, (Strings{"dq", "dk", "dv"}));
  const std::vector<Argument>& arguments = plan.launches[1].arguments;
  EXPECT_EQ(pointer_of(arguments[5])->buffer, "do");
  EXPECT_EQ(pointer_of(arguments[6])->buffer, "") << "no gradient of a final state";
  EXPECT_EQ(pointer_of(arguments[11])->buffer, "") << "dg, where there is no g";
  EXPECT_GT(kernel.adjoint_arithmetic(resolved(c)).value_readout, 60 * 0x1p-24);
}

TEST(ForeignKernel, GradientsFollowTheForwardLaunchesWhereTheyReadWhatTheseLeave) {
  Case c = small_case();
  Strings both = kBackward;
  both.insert(both.begin(), "gla_naive_bf16");
  const Kernel apart = load_both_ways();
  EXPECT_EQ(directions_of(apart), (std::vector{Direction::forward, Direction::backward, Direction::both}));
  EXPECT_EQ(functions_of(plan_of(apart, c)), Strings{"gla_naive_bf16"});
  c.direction = Direction::both;
  EXPECT_EQ(functions_of(plan_of(apart, c)), both);
  EXPECT_EQ(plan_of(apart, c).outputs.size(), 6u);
  c.direction = Direction::backward;
  EXPECT_EQ(functions_of(plan_of(apart, c)), kBackward);

  const Program reads_o = plan_of(
      load_both_ways(
          json::parse(R"([{"op": "replace", "path": "/backward_launches/3/arguments/2", "value": "o"}])")),
      c);
  EXPECT_EQ(functions_of(reads_o), both);
  EXPECT_EQ(reads_o.outputs.size(), 4u);
  const auto o = std::find_if(reads_o.workspaces.begin(), reads_o.workspaces.end(),
                              [](const Workspace& workspace) { return workspace.name == "o"; });
  ASSERT_NE(o, reads_o.workspaces.end());
  EXPECT_EQ(o->bytes, 2 * 100 * 3 * 70 * 2);
  const Kernel shares =
      load_both_ways(json::parse(R"([{"op": "replace", "path": "/launches/0/arguments/6", "value": "G"},
                      {"op": "add", "path": "/omits", "value": ["final_state"]}])"));
  EXPECT_EQ(functions_of(plan_of(shares, c)), both) << "a workspace of both";
}

TEST(ForeignKernel, MistakesInLaunchesOfGradientsAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"op": "replace", "path": "/backward_launches/1/arguments/11", "value": null}])",
       "at /backward_launches: no launch is given the output \"dg\"; pass it, or list it in \"omits\""},
      {R"([{"op": "replace", "path": "/backward_launches/1/arguments/5", "value": "q"},
           {"op": "replace", "path": "/backward_launches/3/arguments/3", "value": "q"}])",
       "at /backward_launches: no launch is given the input \"do\""},
      {R"([{"op": "replace", "path": "/backward_launches/0/fill", "value": "q"}])",
       "at /backward_launches/0/fill: \"q\" is no workspace and nothing that gla writes; known here: o, "
       "final_state, dq"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/5", "value": "dq"}])",
       "at /launches/0/arguments/5: gla has no tensor \"dq\" and no workspace has that name"},
      {R"([{"op": "replace", "path": "/backward_launches/1/function", "value": "rows"}])",
       "at /backward_launches/1/function: "},
      {R"([{"op": "replace", "path": "/arithmetic", "value":
            {"preset": "fp32-recurrent", "backward": {"adjoint": {"steps": 1}}}}])",
       "at /arithmetic/backward/adjoint: unknown field \"steps\""},
  };
  for (const auto& [patch, part] : rows) {
    try {
      load_both_ways(json::parse(patch));
      ADD_FAILURE() << patch;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(ForeignKernel, LaunchWithoutBlocksIsSkipped) {
  Case c = small_case();
  c.T = 0;
  const Kernel kernel =
      load_patched(json::parse(R"([{"op": "replace", "path": "/launches/0/grid/1", "value": "T"}])"));
  EXPECT_TRUE(plan_of(kernel, c).launches.empty());
  c.T = 5;
  EXPECT_EQ(plan_of(kernel, c).launches.size(), 1u);
}

TEST(ForeignKernel, DisagreementOfPlanAndPtxIsFoundBeforeAnythingRuns) {
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"op": "replace", "path": "/operator", "value": "glaa"}])", "glaa"},
      {R"([{"op": "replace", "path": "/launches/0/function", "value": "gla_{dtype}"}])",
       "has no entry \"gla_bf16\"; it has: gla_naive_bf16"},
      {R"([{"op": "remove", "path": "/launches/0/arguments/12"}])",
       "at /launches/0/arguments: 12 arguments for gla_naive_bf16, which has 13 parameters"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/8", "value": {"i64": "T"}}])",
       "at /launches/0/arguments/8: i64 does not fit the parameter"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/12", "value": {"i32": 1}}])", "i32 does not fit"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/12", "value": "v"}])", "a pointer does not fit"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/0", "value": "Q"}])",
       "at /launches/0/arguments/0: gla has no tensor \"Q\" and no workspace"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/6", "value": null}])",
       "no launch is given the output \"final_state\"; pass it, or list it in \"omits\""},
      {R"([{"op": "replace", "path": "/launches/0/arguments/0", "value": "k"}])",
       "no launch is given the input \"q\""},
      {R"([{"op": "add", "path": "/omits", "value": ["ht"]}])", "gla has no output \"ht\""},
      {R"([{"op": "add", "path": "/reads_views", "value": ["o"]}])",
       "at /reads_views: gla has no input \"o\""},
      {R"([{"op": "add", "path": "/layouts", "value": {"p": ["B"]}}])",
       "at /layouts/p: gla has no tensor \"p\""},
      {R"([{"op": "add", "path": "/layouts", "value": {"o": ["B", "H", "T"]}}])",
       "at /layouts/o: write each axis of o once, the slowest first: B, T, H, V"},
      {R"([{"op": "add", "path": "/layouts", "value": {"q": ["B", "H", "T", "T"]}}])",
       "at /layouts/q: write each axis of q once"},
      {R"([{"op": "add", "path": "/layouts", "value": {"q": ["B", "H", "T", "K"]}},
           {"op": "add", "path": "/reads_views", "value": ["q"]}])",
       "at /layouts/q: q is read by its strides"},
      {R"([{"op": "add", "path": "/workspaces", "value": [{"name": "q", "bytes": 4}]}])",
       "give the workspace another name"},
      {R"([{"op": "replace", "path": "/launches/0/shared", "value": "3 * D * 4"}])",
       "at /launches/0/shared: \"3 * D * 4\""},
      {R"([{"op": "add", "path": "/accepts", "value": "K %"}])", "at /accepts: "},
      {R"([{"op": "replace", "path": "/arithmetic", "value": "exact"}])",
       "no arithmetic preset is called \"exact\""},
  };
  for (const auto& [patch, part] : rows) {
    try {
      load_patched(json::parse(patch));
      ADD_FAILURE() << patch;
    } catch (const BadInput& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(part), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
  EXPECT_NO_THROW(load_patched(json::parse(
      R"([{"op": "replace", "path": "/launches/0/arguments/6", "value": null},
          {"op": "add", "path": "/omits", "value": ["final_state"]}])")));
  EXPECT_THROW(load_foreign_kernel("no/such.ptx", kPlan), BadInput);
  EXPECT_THROW(load_foreign_kernel(kPtx, "no/such.json"), BadInput);
  EXPECT_THROW(load_foreign_kernel(kPlan, kPlan), BadInput);
}

TEST(ForeignKernel, LaunchesMayNameThePtxFilesOfAFolder) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("assay_foreign_folder_" + std::to_string(::getpid()));
  struct Remove {
    std::filesystem::path path;
    ~Remove() { std::filesystem::remove_all(path); }
  } remove{folder};
  std::filesystem::create_directories(folder / "ptx");
  for (const char* dtype : {"bf16", "fp16", "fp32"})
    std::filesystem::copy_file(kPtx, folder / "ptx" / (std::string(dtype) + ".ptx"));
  const json patch = json::parse(
      R"([{"op": "add", "path": "/launches/0/ptx", "value": "{dtype}.ptx"},
          {"op": "remove", "path": "/name"}])");
  const std::string plan = folder / "my_plan.json";
  std::ofstream(plan) << json::parse(std::ifstream(kPlan)).patch(patch).dump();

  const Kernel kernel = load_foreign_kernel(folder / "ptx", plan);
  Case c = small_case();
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
    c.dtype = dtype;
    const Program made = plan_of(kernel, c);
    ASSERT_EQ(made.modules.size(), 1u);
    EXPECT_EQ(made.modules[0].name, std::string(format(dtype).name) + ".ptx");
    EXPECT_EQ(made.modules[0].path, folder / "ptx" / made.modules[0].name);
    EXPECT_EQ(made.launches.at(0).module, made.modules[0].name);
  }
  auto message = [](const std::string& ptx, const std::string& of_plan) -> std::string {
    try {
      load_foreign_kernel(ptx, of_plan);
      return "accepted";
    } catch (const BadInput& error) {
      return error.what();
    }
  };
  EXPECT_NE(message("", plan).find("bf16.ptx: cannot be read; a launch of " + plan + " names it"),
            std::string::npos)
      << message("", plan);
  EXPECT_NE(message(kPtx, plan).find("/launches/0/ptx: names its PTX file; give --ptx the folder"),
            std::string::npos)
      << message(kPtx, plan);
  EXPECT_NE(message(folder, kPlan).find("names no PTX file (\"ptx\"); give --ptx the file, not a folder"),
            std::string::npos)
      << message(folder, kPlan);
  EXPECT_NE(message("", kPlan).find("give it with --ptx"), std::string::npos) << message("", kPlan);
  std::filesystem::rename(folder / "ptx/bf16.ptx", folder / "bf16.ptx");
  std::filesystem::rename(folder / "ptx/fp16.ptx", folder / "fp16.ptx");
  std::filesystem::rename(folder / "ptx/fp32.ptx", folder / "fp32.ptx");
  EXPECT_EQ(load_foreign_kernel("", plan).name, "my_plan");
}

TEST(ForeignKernel, ShortIntegersFitTheirOwnParameters) {
  std::stringstream text;
  text << std::ifstream(kPtx).rdbuf();
  const auto path = std::filesystem::temp_directory_path() / ("assay_short_" + std::to_string(::getpid()));
  const std::pair<const char*, const char*> rows[] = {{".u8", "i8"}, {".s16", "i16"}};
  for (const auto& [type, kind] : rows) {
    std::string ptx = text.str();
    const std::string before = ".param .u32 gla_naive_bf16_param_8";
    ptx.replace(ptx.find(before), before.size(), std::string(".param ") + type + " gla_naive_bf16_param_8");
    std::ofstream(path.string() + ".ptx") << ptx;
    json plan = json::parse(std::ifstream(kPlan));
    plan["dtypes"] = {"bf16"};
    for (const std::string written : {"i8", "i16", "i32"}) {
      plan["launches"][0]["arguments"][8] = {{written, "T - 101"}};
      std::ofstream(path.string() + ".json") << plan.dump();
      auto load = [&] { return load_foreign_kernel(path.string() + ".ptx", path.string() + ".json"); };
      if (written != kind) {
        EXPECT_THROW(load(), BadInput) << written << " for " << type;
        continue;
      }
      const Program made = plan_of(load(), small_case());
      const Argument& argument = made.launches.at(0).arguments.at(8);
      EXPECT_EQ(argument.bytes.size(), written == "i8" ? 1u : 2u);
      EXPECT_EQ(integer_of(argument), -1);
      Case long_case = small_case();
      long_case.T = 100000;
      EXPECT_THROW(plan_of(load(), long_case), BadInput);  // beyond the type
    }
  }
  std::filesystem::remove(path.string() + ".ptx");
  std::filesystem::remove(path.string() + ".json");
}

TEST(ForeignKernel, ValuesNoGpuCanLaunchAreRefusedForTheCase) {
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"op": "replace", "path": "/launches/0/block", "value": ["K", "H", "N", 1]}])", "at most 3"},
      {R"([{"op": "replace", "path": "/launches/0/block", "value": ["512", "H"]}])",
       "1536 threads; a block has at most 1024"},
      {R"([{"op": "replace", "path": "/launches/0/block", "value": "T - 100"}])",
       "/block/0: \"T - 100\" = 0 is not a whole"},
      {R"([{"op": "replace", "path": "/launches/0/grid", "value": "K / 7"}])",
       "is not a whole number from 0 to 2147483647"},
      {R"([{"op": "replace", "path": "/launches/0/shared", "value": "K * 10000"}])", "from 0 to 232448"},
      {R"([{"op": "replace", "path": "/launches/0/arguments/8", "value": {"i32": "2^31"}}])",
       "2147483648 is not a whole"},
      {R"([{"op": "add", "path": "/workspaces", "value": [{"name": "w", "bytes": "-T"}]}])",
       "/workspaces/0/bytes: \"-T\" = -100"},
  };
  for (const auto& [patch, part] : rows) {
    try {
      plan_of(load_patched(json::parse(patch)), small_case());
      ADD_FAILURE() << patch;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
