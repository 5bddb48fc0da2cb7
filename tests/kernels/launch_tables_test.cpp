#include "kernels/launch_tables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernel.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/parameters.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

Case case_of(const std::string& kernel, int64_t B, int64_t T, int64_t H, int64_t K, int64_t V) {
  Case c;
  c.kernel = kernel;
  c.B = B, c.T = T, c.H = H, c.K = K, c.V = V;
  return c;
}

Program plan_of(const Case& c) {
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  TensorMap inputs;  // a plan reads which inputs there are, and of what they hold only the constants of heads
  for (const ArgumentSpec& spec : inputs_of(c, op))
    if (!c.without.contains(std::string(spec.name)))
      inputs.emplace(spec.name, spec.axes.size() == 1
                                    ? Tensor(std::string(spec.name), c.gate_dtype, {{"H", c.H}})
                                    : Tensor());
  return kernel.plan(resolve_unchecked(c, op), inputs);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Kernel& kernel : kernels())
    for (const Dtype dtype : kernel.limits.dtypes)
      for (const Dtype gate : kernel.limits.gate_dtypes)
        for (const auto& [T, K, V] : {std::array<int64_t, 3>{0, 64, 64},
                                      {1, 1, 1},
                                      {65, 17, 100},
                                      {640, 256, 256},
                                      {8192, 128, 128}}) {
          const KernelLimits& most = kernel.limits;
          Case c = case_of(kernel.name, 2, T, 3, std::min(K, most.max_K), std::min(V, most.max_V));
          c.dtype = dtype, c.gate_dtype = gate;
          for (const ArgumentSpec& spec : find_operator(kernel.operator_name).inputs) {
            if (T == 65 && spec.optional) c.without.insert(std::string(spec.name));
            if (std::count(spec.axes.begin(), spec.axes.end(), "M") > 0) c.M = std::min(K, most.max_M);
          }
          for (const Direction direction : directions_of(kernel)) {
            c.direction = direction;
            c.initial_state = T != 65;
            result.push_back(c);
          }
        }
  return result;
}

const ptx::Function& function_of(const ptx::Module& module, const std::string& name) {
  const auto found = std::find_if(module.functions.begin(), module.functions.end(),
                                  [&](const ptx::Function& f) { return f.name == name; });
  if (found == module.functions.end()) throw std::runtime_error("no entry " + name);
  return *found;
}

/// The text with nothing in its functions' bodies, which hold most of it: from a line "{" to a line "}".
std::string declarations_of(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t body = text.find("\n{\n", at), end = body == text.npos ? body : text.find("\n}\n", body);
    if (end == text.npos) return out + text.substr(at);
    out += text.substr(at, body - at) + "\n{\nret;";
    at = end;
  }
  return out;
}

TEST(LaunchTables, ArgumentsFitTheParametersOfTheirEntries) {
  std::map<const std::string*, ptx::Module> parsed;
  for (const Case& c : cases()) {
    const Program plan = plan_of(c);
    for (const Launch& launch : plan.launches) {
      const auto named = [&](const Module& each) { return each.name == launch.module; };
      const auto found = std::find_if(plan.modules.begin(), plan.modules.end(), named);
      ASSERT_NE(found, plan.modules.end()) << launch.module;
      const Module& module = *found;
      if (!parsed.contains(module.ptx.get()))
        parsed.emplace(module.ptx.get(), ptx::parse(declarations_of(*module.ptx), module.path));
      const ptx::Function& entry = function_of(parsed.at(module.ptx.get()), launch.function);
      EXPECT_NO_THROW(require_arguments(launch, entry, launch.function));
      EXPECT_LE(static_cast<int32_t>(launch.block[0]), entry.max_threads) << launch.function;
      EXPECT_EQ(launch.block[0] % 32, 0u) << launch.function;
      const bool hopper = launch.module.find("_hopper.") != std::string::npos;
      EXPECT_LE(launch.shared_bytes, hopper ? 232448u : 101376u)
          << "more than a block may have on sm_90, or on every GPU since sm_86";
    }
  }
}

TEST(LaunchTables, PointersNameWhatThePlanHolds) {
  for (const Case& c : cases()) {
    const Program plan = plan_of(c);
    std::vector<std::string> known;
    for (const ArgumentSpec& spec : inputs_of(c, find_operator(find_kernel(c.kernel).operator_name)))
      if (!c.without.contains(std::string(spec.name))) known.emplace_back(spec.name);
    for (const Workspace& workspace : plan.workspaces) known.push_back(workspace.name);
    for (const ProgramOutput& output : plan.outputs) known.push_back(output.name);
    for (const Tensor& constant : plan.constants) known.push_back(constant.name);
    for (const Launch& launch : plan.launches)
      for (const Argument& argument : launch.arguments)
        for (const Relocation& relocation : argument.relocations)
          EXPECT_NE(std::find(known.begin(), known.end(), relocation.to.buffer), known.end())
              << relocation.to.buffer;
  }
}

TEST(LaunchTables, ChunksNeverStraddleSequences) {
  Case c = case_of("gla.chunk", 1, 200, 1, 16, 16);
  c.cu_seqlens = {0, 0, 70, 70, 134, 200};
  const gated::Sequences sequences = gated::sequences_of(resolve(c, find_operator("gla")), 64);
  EXPECT_EQ(sequences.count, 5);
  const auto table = sequences.table.as<int64_t>(), chunks = sequences.chunk_table.as<int64_t>();
  const std::vector<int64_t> expected_sequences = {0, 0, 0, 0, 70, 0, 70, 0, 2, 70, 64, 2, 134, 66, 3};
  const std::vector<int64_t> expected_chunks = {0, 64, 64, 6, 70, 64, 134, 64, 198, 2};
  EXPECT_EQ(std::vector(table.begin(), table.end()), expected_sequences);
  EXPECT_EQ(std::vector(chunks.begin(), chunks.end()), expected_chunks);
}

TEST(LaunchTables, AWorkspaceAndAModuleAreAPlansOnce) {
  Program plan;
  EXPECT_EQ(gated::workspace_of(plan, "none", 0).buffer, "");
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(gated::workspace_of(plan, "sums", 8).buffer, "sums");
    EXPECT_EQ(gated::module_of(plan, "gsa/own_decays.fp32"), "gsa/own_decays.fp32");
  }
  ASSERT_EQ(plan.workspaces.size(), 1u);
  EXPECT_EQ(plan.workspaces[0].bytes, 8);
  ASSERT_EQ(plan.modules.size(), 1u);
  EXPECT_EQ(plan.modules[0].name, "gsa/own_decays.fp32");
}

TEST(LaunchTables, ALaunchOfTooManyBlocksNamesTheKernel) {
  Program plan;
  plan.name = "gla.chunk";
  gated::add_launch(plan, "m", "f", 7, {int32_t{1}}, 64);
  ASSERT_EQ(plan.launches.size(), 1u);
  EXPECT_EQ(plan.launches[0].grid, (std::array<uint32_t, 3>{7, 1, 1}));
  EXPECT_EQ(plan.launches[0].shared_bytes, 64u);
  try {
    gated::add_launch(plan, "m", "f", int64_t{1} << 31, {});
    FAIL() << "taken";
  } catch (const BadInput& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("gla.chunk: 2147483648 blocks")) << error.what();
  }
}

TEST(LaunchTables, RefusesWhatIsOutsideTheLimitsByName) {
  const auto message = [](Case c) -> std::string {
    try {
      plan_of(c);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  };
  for (const Kernel& kernel : kernels()) {
    const int64_t K = kernel.limits.max_K, V = kernel.limits.max_V;
    EXPECT_EQ(message(case_of(kernel.name, 1, 8, 1, K + 1, 8)),
              fmt::format("{}: K={} is outside 1..{}", kernel.name, K + 1, K));
    EXPECT_EQ(message(case_of(kernel.name, 1, 8, 1, 8, V + 1)),
              fmt::format("{}: V={} is outside 1..{}", kernel.name, V + 1, V));
    Case c = case_of(kernel.name, 1, 8, 1, 8, 8);
    c.dtype = Dtype::tf32;
    EXPECT_EQ(message(c), kernel.name + ": dtype tf32 is not supported; use bf16, fp16, fp32");
    c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp64;
    EXPECT_EQ(message(c), kernel.name + ": gate dtype fp64 is not supported; use bf16, fp16, fp32");
  }
}

}  // namespace
}  // namespace assay
