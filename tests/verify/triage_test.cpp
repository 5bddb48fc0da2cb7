#include "src/verification/verify/triage.h"

#include <gtest/gtest.h>

#include "src/verification/verify/verify.h"
#include "tests/verify/float_recurrence.h"

namespace assay {
namespace {

TEST(Triage, EachTableRowHasItsFault) {
  struct Row {
    bool outside;
    int64_t differing, peer_differing;
    bool race;
    const char* fault;
  };
  const Row rows[] = {{false, 0, 0, false, "none"},
                      {true, 0, 0, false, "kernel"},
                      {false, 5, 0, false, "compiler-or-hardware"},
                      {true, 5, 0, false, "kernel and compiler-or-hardware"},
                      {false, 5, 3, false, "race"},
                      {true, 5, 3, false, "race"},
                      {false, 5, 0, true, "race"},
                      {true, 0, 0, true, "kernel"},
                      {false, 0, 0, true, "race"}};
  for (const Row& row : rows) {
    EngineEvidence e;
    e.outside = row.outside, e.differing = row.differing, e.peer_differing = row.peer_differing,
    e.peer_runs = 4;
    if (row.race) e.race = CheckFinding{CheckName::races, CheckKind::race, "two threads", {}, {}, ""};
    const Triage t = triage_of(e);
    EXPECT_EQ(name_of(t.fault), row.fault) << row.outside << row.differing << row.peer_differing << row.race;
    EXPECT_GE(t.evidence.size(), 3u);
    EXPECT_FALSE(t.explanation.empty());
  }
}

/// A GPU that is the machine but for what `tamper` does to run n.
std::string fault_between(std::function<void(Outcome&, int)> on_machine,
                          std::function<void(Outcome&, int)> on_gpu) {
  FloatBackend machine, gpu;
  if (on_machine) machine.tamper = on_machine;
  if (on_gpu) gpu.tamper = on_gpu;
  VerifyOptions options;
  options.threads = 1, options.diagnose = false, options.peer = &gpu;
  const Verification v = verify(float_case(), float_kernel(), machine, options);
  return v.triage ? std::string(name_of(v.triage->fault)) : "not judged";
}

void one_unit_up(Outcome& o, int64_t flat) {
  Tensor& out = o.outputs.at("o");
  out.set(flat, std::nextafter(static_cast<float>(out.value(flat)), 1e9f));
}

TEST(Triage, AGpuThatComputesTheSameIsNotAtFault) {
  EXPECT_EQ(fault_between({}, {}), "none");
}

TEST(Triage, WrongValuesOnBothAreTheKernels) {
  const auto wrong = [](Outcome& o, int) { o.outputs.at("o").set(17, 1e3); };
  EXPECT_EQ(fault_between(wrong, wrong), "kernel");
}

TEST(Triage, OtherBitsThatTheGpuRepeatsAreTheCompilers) {
  EXPECT_EQ(fault_between({}, [](Outcome& o, int) { one_unit_up(o, 5); }), "compiler-or-hardware");
}

TEST(Triage, AWrongKernelThatIsAlsoCompiledOtherwiseIsBoth) {
  EXPECT_EQ(fault_between([](Outcome& o, int) { o.outputs.at("o").set(17, 1e3); },
                          [](Outcome& o, int) { one_unit_up(o, 5); }),
            "kernel and compiler-or-hardware");
}

TEST(Triage, AGpuThatDoesNotRepeatItselfRaces) {
  EXPECT_EQ(fault_between({}, [](Outcome& o, int n) { one_unit_up(o, n); }), "race");
  EXPECT_EQ(fault_between({},
                          [](Outcome& o, int n) {
                            if (n == 3)
                              one_unit_up(o, 0);
                            else
                              one_unit_up(o, 1);
                          }),
            "race")
      << "not before its third run";
}

TEST(Triage, ATrapOnTheGpuAloneIsNoFaultOfTheKernel) {
  EXPECT_EQ(fault_between({},
                          [](Outcome& o, int) {
                            o.trap = Trap{TrapKind::out_of_bounds, "the GPU reports it", {}, {}, {}};
                          }),
            "compiler-or-hardware");
}

}  // namespace
}  // namespace assay
