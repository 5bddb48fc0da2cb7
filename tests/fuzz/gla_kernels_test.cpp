// The kernels themselves under fuzzing: silent as they are, found out with a fault.
#include <gtest/gtest.h>

#include <algorithm>

#include "fuzz/fuzz.h"
#include "src/verify/verify.h"
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
  Listener silent;
  const FuzzRun run = fuzz(both, *backend, with_cases(160, 31), silent);
  for (const Verification& v : run.findings) ADD_FAILURE() << v.cause << "  " << v.replay;
  EXPECT_EQ(run.undecided, 0);
  EXPECT_EQ(run.passed + run.domain, 160);
}

TEST(GlaKernels, OneTokensFaultIsFoundWithinTwoThousandCasesInEveryDtype) {
  for (const Kernel& clean : kernels())
    for (Dtype dtype : clean.limits.dtypes) {
      if (clean.operator_name != "gla") continue;  // the faults are planted in its inputs
      Kernel kernel = clean;
      kernel.limits.dtypes = {dtype};
      for (const char* fault : {"term dropped", "decay one step late", "key scaled"}) {
        test::PlantedBackend backend(machine(), fault);
        FirstFinding first;
        EXPECT_THROW(fuzz({&kernel}, backend, with_cases(2000, 3), first), FirstFinding::Seen)
            << kernel.name << " " << format(dtype).name << " " << fault;
      }
    }
}

/// Shrunk overflows end within two chunks of one head, and the kernel without the defect passes the same
/// case.
TEST(GlaKernels, KnownDefectsAreFoundUntoldAndShrunkAndTheirCasesPassWithoutThem) {
  std::vector<int64_t> lengths;
  for (const char* defect : {"S1", "S2a", "S2b"}) {
    const auto backend = machine();
    Kernel broken = find_kernel(std::string("gla.chunk@") + defect);
    broken.adjoint_arithmetic = nullptr;  // forward: every module with a defect is compiled anew
    Listener silent;
    const FuzzRun run = fuzz({&broken}, *backend, with_cases(32, 1), silent);
    ASSERT_FALSE(run.findings.empty()) << defect;
    const Verification& v = run.findings[0];
    EXPECT_EQ(v.case_.B * v.case_.H, 1) << v.token;
    EXPECT_TRUE(v.origin.has_value()) << v.token;
    lengths.push_back(v.case_.T);
    Case same = v.case_;
    same.kernel = "gla.chunk";
    EXPECT_EQ(verify(same, find_kernel("gla.chunk"), *backend).verdict, "pass") << v.token;
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_LE(lengths[1], 128);
}

}  // namespace
}  // namespace assay
