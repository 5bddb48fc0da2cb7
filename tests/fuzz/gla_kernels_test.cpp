// The kernels themselves under fuzzing: silent as they are, found out with a fault.
#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/fuzz.h"
#include "fuzz/trial.h"
#include "kernels/mutant.h"
#include "src/verification/verify/verify.h"
#include "tests/fuzz/planted_backend.h"

namespace assay {
namespace {

std::unique_ptr<Backend> machine() {
  BackendOptions options;
  options.threads = 1;
  return make_vm_backend(options);
}

FuzzOptions with_cases(int64_t cases, uint64_t seed) {
  FuzzOptions options;
  options.cases = cases;
  options.seed = seed;
  options.jobs = 2;
  options.db.clear();
  return options;
}

/// Ends the run at the first finding.
struct FirstFinding : Listener {
  struct Seen {
    std::string cause;
  };
  void found(const Verification& v) override { throw Seen{v.cause}; }
};

TEST(GlaKernels, AreSilentOnCasesOfEveryKind) {
  const auto backend = machine();
  std::vector<const Kernel*> both;
  for (const Kernel& kernel : kernels()) both.push_back(&kernel);
  const auto cases = static_cast<int64_t>(3 * both.size());
  Listener silent;
  const FuzzRun run = fuzz(both, *backend, with_cases(cases, 31), silent);
  for (const Verification& v : run.findings) ADD_FAILURE() << v.cause << "  " << v.replay;
  EXPECT_EQ(run.undecided, 0);
  EXPECT_EQ(run.passed + run.domain, cases);
}

/// A fault, planted in the inputs of gla.
class PlantedFault : public testing::TestWithParam<const char*> {};

TEST_P(PlantedFault, OfOneTokenIsFoundWithinTwoThousandCasesInEveryDtype) {
  for (const Kernel& clean : kernels())
    for (Dtype dtype : clean.limits.dtypes) {
      if (clean.operator_name != "gla") continue;
      Kernel kernel = clean;
      kernel.limits.dtypes = {dtype};
      test::PlantedBackend backend(machine(), GetParam());
      FirstFinding first;
      EXPECT_THROW(fuzz({&kernel}, backend, with_cases(2000, 3), first), FirstFinding::Seen)
          << kernel.name << " " << format(dtype).name;
    }
}
INSTANTIATE_TEST_SUITE_P(EachKind, PlantedFault,
                         testing::Values("term dropped", "decay one step late", "key scaled"));

/// Shrunk overflows end within two chunks of one head, and the kernel without the defect passes the same
/// case.
TEST(GlaKernels, KnownDefectsAreFoundUntoldAndShrunkAndTheirCasesPassWithoutThem) {
  std::vector<int64_t> lengths;
  for (const char* defect : {"S1", "S2a", "S2b"}) {
    const auto backend = machine();
    Kernel broken = find_kernel(std::string("gla.chunk@") + defect);
    broken.adjoint_arithmetic =
        nullptr;  // forward, of few formats: every module with a defect is compiled anew
    broken.limits.dtypes = {Dtype::bf16, Dtype::fp32}, broken.limits.gate_dtypes = {Dtype::fp32};
    Listener silent;
    const FuzzRun run = fuzz({&broken}, *backend, with_cases(32, 1), silent);
    ASSERT_FALSE(run.findings.empty()) << defect;
    const Verification& v = run.findings[0];
    EXPECT_EQ(v.case_.B * v.case_.H, 1) << v.token;
    EXPECT_TRUE(v.origin.has_value()) << v.token;
    lengths.push_back(v.case_.T);
    Case same = v.case_;
    same.kernel = "gla.chunk";
    EXPECT_EQ(verify(same, find_kernel("gla.chunk"), *backend).verdict, Verdict::pass) << v.token;
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_LE(lengths[1], 128);
}

/// The machine runs warps one after another: without a barrier the first one may overwrite what the second
/// still reads.
TEST(GlaKernels, AWrongValueForWantOfABarrierIsExplainedAsARace) {
  const auto backend = machine();
  const FuzzOptions options = with_cases(1, 1);
  int wrong = 0;
  const Case clean = parse_token("gla.fused_recurrent/B1/T20/H1/K8/V16/fp32/g-fp32/mild/s1/backward");
  const Operator& op = find_operator("gla");
  const Program plan = find_kernel(clean.kernel).plan(resolve_unchecked(clean, op), draw_inputs(clean, op));
  for (const Module& module : plan.modules) {
    const ptx::MutableText text(module.ptx, module.path);
    for (int32_t f = 0; f < static_cast<int32_t>(text.module().functions.size()) && wrong < 2; ++f) {
      const std::string& name = text.module().functions[static_cast<size_t>(f)].name;
      if (std::none_of(plan.launches.begin(), plan.launches.end(),
                       [&](const Launch& l) { return l.function == name; }))
        continue;
      for (const ptx::Mutation& m : text.mutations(f)) {
        if (m.change->name != "drop-barrier" || wrong == 2) continue;
        Trial trial;
        const Kernel broken = with_mutation(find_kernel(clean.kernel), mutant_id(module.name, text.name(m)));
        trial.kernel = &broken, trial.case_ = clean;
        trial.case_.kernel = broken.name;
        const TrialReport report = run_trial(trial, *backend, options);
        if (!report.plain_cause.starts_with("violation/")) continue;
        ++wrong;
        const Verification v = fully_traced(report, report.verification, *backend, options);
        ASSERT_FALSE(v.diagnosis.empty()) << v.token;
        EXPECT_EQ(v.diagnosis.front().cause, "data-race") << v.token;
        EXPECT_EQ(v.cause, report.plain_cause) << v.token;
      }
    }
  }
  EXPECT_EQ(wrong, 2);
}

}  // namespace
}  // namespace assay
