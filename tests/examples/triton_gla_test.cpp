// The Triton example: its PTX on the machine, held against NumPy's float64 and against the reference; its
// Python lines in what is said about it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/fuzz.h"
#include "kernels/foreign.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/case/given_inputs.h"
#include "src/verification/compare/digest.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

const std::string kExample = ASSAY_SOURCE_DIR "/examples/triton_gla/";
const std::string kData = ASSAY_SOURCE_DIR "/tests/data/triton_gla_";

Kernel example(const std::string& build) {
  return load_foreign_kernel("", kExample + build + "/plan.json");
}

/// The example's plan after `patch` (RFC 6902), beside it the PTX of its folder.
Kernel patched(const std::string& build, const char* patch) {
  const auto path =
      std::filesystem::temp_directory_path() / ("assay_triton_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << nlohmann::json::parse(std::ifstream(kExample + build + "/plan.json"))
                             .patch(nlohmann::json::parse(patch));
  const Kernel kernel = load_foreign_kernel(kExample + build, path);
  std::filesystem::remove(path);
  return kernel;
}

/// What NumPy wrote, and what the machine and the reference make of the same inputs.
struct Compared {
  TensorMap numpy;
  TensorMap machine;
  ReferenceResult reference;
  Case c;
};

Compared compared(const std::string& build, const std::string& dtype, const std::string& arch) {
  const Kernel kernel = example(build);
  const Operator& op = find_operator(kernel.operator_name);
  Case base;
  base.kernel = kernel.name;
  const std::string path = kData + dtype + ".inputs.safetensors";
  const GivenInputs given = fit_inputs(base, op, read_tensors(path), path);
  const ResolvedCase resolved = resolve(given.case_, op);
  BackendOptions options;
  options.arch = arch;
  Outcome outcome = make_vm_backend(options)->run(kernel.plan(resolved, given.inputs), given.inputs);
  if (outcome.trap) throw BadInput(outcome.trap->message);
  Problem problem{
      .sizes = sizes_of(given.case_), .inputs = &given.inputs, .arithmetic = kernel.arithmetic(resolved)};
  problem.scale = op.default_scale(problem.sizes);
  return {read_tensors(kData + dtype + ".numpy.safetensors"), std::move(outcome.outputs),
          op.evaluate(problem), given.case_};
}

struct Recorded {
  const char *build, *dtype, *arch;
};
constexpr Recorded kRecorded[] = {{"sm_80", "bf16", "sm_80"}, {"sm_80", "bf16", "sm_90"},
                                  {"sm_80", "fp32", "sm_80"}, {"sm_80", "fp32", "sm_90"},
                                  {"sm_90", "bf16", "sm_90"}, {"sm_90", "fp32", "sm_90"}};

TEST(TritonGla, TheReferenceIsNumPysAndTheMachineStaysWithinItsBound) {
  for (const Recorded& row : kRecorded) {
    const Compared x = compared(row.build, row.dtype, row.arch);
    for (const ReferenceOutput& output : x.reference.outputs) {
      const Tensor& numpy = x.numpy.at(output.name);
      const Tensor& machine = x.machine.at(output.name);
      ASSERT_EQ(numpy.size(), static_cast<int64_t>(output.mid.size()));
      for (int64_t i = 0; i < numpy.size(); ++i) {
        const auto at = static_cast<size_t>(i);
        // Per token an exponential (1 ulp), a product, k v and an addition, then K products and additions:
        // all on the absolute companion.
        const double numpy_error = (4.0 * static_cast<double>(x.c.T) + static_cast<double>(x.c.K) + 8) *
                                   0x1p-52 * output.companion[at];
        EXPECT_LE(std::fabs(numpy.value(i) - output.mid[at]), numpy_error + output.rad[at])
            << row.dtype << " " << output.name << "[" << i << "]";
        EXPECT_LE(std::fabs(machine.value(i) - numpy.value(i)), output.bound[at] + numpy_error)
            << row.dtype << " " << row.arch << " " << output.name << "[" << i << "]";
      }
    }
  }
}

TEST(TritonGla, NumPysFilesAreTheOnesThatWereWritten) {
  EXPECT_EQ(digest(read_tensors(kData + "bf16.numpy.safetensors")), 6848385618351748710u);
  EXPECT_EQ(digest(read_tensors(kData + "fp32.numpy.safetensors")), 4285390344913667757u);
}

TEST(TritonGla, EveryExponentialLeadsToItsPythonLine) {
  for (const char* file : {"sm_80/gla_chunk.bf16.ptx", "sm_80/gla_chunk.fp32.ptx", "sm_90/gla_chunk.bf16.ptx",
                           "sm_90/gla_chunk.fp32.ptx", "overflowing/gla_chunk.bf16.ptx"}) {
    const ptx::Module module = ptx::parse(read_file(kExample + file), file);
    const SourceText source("triton_gla");
    int seen = 0;
    for (size_t i = 0; i < module.functions.at(0).body.size(); ++i) {
      if (!module.functions[0].body[i].opcode.starts_with("ex2")) continue;
      const ChainLink link = link_of(module, 0, static_cast<int32_t>(i), source);
      EXPECT_TRUE(link.where.file.starts_with("examples/triton_gla/")) << file << ": " << link.where.file;
      EXPECT_NE(link.text.find("tl.exp("), std::string::npos) << link.where.line << ": " << link.text;
      ++seen;
    }
    EXPECT_GE(seen, 10) << file;
  }
}

TEST(TritonGla, SumsLeadToTheLineThatAsksForThem) {
  const std::string file = "sm_80/gla_chunk.fp32.ptx";
  const ptx::Module module = ptx::parse(read_file(kExample + file), file);
  const SourceText source("triton_gla");
  std::set<std::string> lines;
  for (size_t i = 0; i < module.functions.at(0).body.size(); ++i)
    if (module.functions[0].body[i].opcode == "add.f32")
      lines.insert(link_of(module, 0, static_cast<int32_t>(i), source).text);
  // Triton's own file of tl.sum and tl.cumsum is not what a reader wants to see.
  for (const std::string& line : lines) EXPECT_FALSE(line.empty());
  EXPECT_TRUE(lines.contains("since_begin = tl.exp(tl.cumsum(b_g, axis=0))"));
}

TEST(TritonGla, APlantedOverflowIsTracedToItsPythonLine) {
  const Case c = parse_token("triton_gla_overflowing/B1/T40/H2/K16/V16/bf16/g-fp32/extreme/s1");
  const auto machine = make_vm_backend({});
  const Verification v = verify(c, example("overflowing"), *machine);
  EXPECT_EQ(v.verdict, Verdict::finding);
  ASSERT_TRUE(v.origin.has_value());
  EXPECT_EQ(v.origin->kind, OriginKind::exp_overflow);
  EXPECT_EQ(v.origin->where.file, "examples/triton_gla/scores_overflowing.py");
  EXPECT_EQ(v.origin->source_text, "scaled_k = b_k * tl.exp(-since_begin)");
  ASSERT_FALSE(v.origin->inputs.empty());
  EXPECT_TRUE(v.origin->inputs[0].element.starts_with("g[")) << v.origin->inputs[0].element;
  bool dot = false;
  for (const ChainLink& link : v.origin->chain) dot = dot || link.text.starts_with("scores = tl.dot(");
  EXPECT_TRUE(dot);
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis[0].cause, "unanchored-decay-factor");

  Case sound = c;
  sound.kernel = "triton_gla";
  EXPECT_EQ(verify(sound, example("sm_80"), *machine).verdict, Verdict::pass);
}

TEST(TritonGla, IsSilentUnderFuzzing) {
  for (const char* architecture : {"sm_80", "sm_90"}) {  // mma.sync and wgmma
    const Kernel kernel = example(architecture);
    FuzzOptions options;
    options.cases = 60;
    options.seed = 5;
    options.jobs = 2;
    options.db.clear();
    Listener silent;
    const auto machine = make_vm_backend({.threads = 1});
    const FuzzRun run = fuzz({&kernel}, *machine, options, silent);
    for (const Verification& v : run.findings)
      ADD_FAILURE() << architecture << " " << v.cause << "  " << v.replay;
    EXPECT_EQ(run.undecided, 0) << architecture;
  }
}

TEST(TritonGla, AWrongLaunchIsFound) {
  const Case c = parse_token("triton_gla/B1/T40/H2/K16/V16/bf16/g-fp32/mild/s1");
  const auto machine = make_vm_backend({});
  // Triton's metadata says how much shared memory a build needs.
  const Verification small = verify(
      c, patched("sm_80", R"([{"op": "replace", "path": "/launches/0/shared", "value": 1024}])"), *machine);
  ASSERT_TRUE(small.trap.has_value());
  EXPECT_EQ(small.trap->kind, TrapKind::out_of_bounds) << small.trap->message;
  // .reqntid fixes the block.
  EXPECT_THROW(verify(c, patched("sm_80", R"([{"op": "replace", "path": "/launches/0/block", "value": 32}])"),
                      *machine),
               BadInput);
  // The scratch pointers that Triton appends belong to the parameters.
  EXPECT_THROW(patched("sm_80", R"([{"op": "remove", "path": "/launches/0/arguments/14"}])"), BadInput);
}

}  // namespace
}  // namespace assay
