// assay run: programs of the CUDA runtime, compiled by nvcc and linked with the stand-in.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace {

Ran run_program(const std::string& options, const std::string& program, const ScratchFolder& here) {
  return run_assay("run " + options + " -- " ASSAY_PROGRAMS_FOLDER "/" + program, here);
}

TEST(Run, ACleanProgramPassesAndSaysWhatItDid) {
  const ScratchFolder here;
  const Ran ran = run_program("--json r.json --repeats", "row_sums", here);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("5 sums are right"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("1 launch of 1 kernel on vm sm_90"), ran.out.npos) << ran.out;
  EXPECT_EQ(nlohmann::json::parse(read_file(here / "r.json")).at("findings").size(), 0u);
}

TEST(Run, AMissingBarrierIsFoundAtItsLine) {
  const ScratchFolder here;
  const Ran ran = run_program("", "row_sums race", here);
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_NE(ran.out.find("race: shared parts"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("row_sums.cu:25"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("replay: assay run -- "), ran.out.npos) << ran.out;
}

TEST(Run, AReadBehindAnAllocationIsTheErrorThatAGpuGives) {
  const ScratchFolder here;
  for (const char* checks : {"all", "none"}) {
    const Ran ran = run_program(std::string("--checks ") + checks, "row_sums past", here);
    EXPECT_EQ(ran.status, 1) << ran.out;
    EXPECT_NE(ran.out.find("an illegal memory access was encountered"), ran.out.npos) << checks << ran.out;
    EXPECT_NE(ran.out.find("row_sums.cu:21"), ran.out.npos) << checks << ran.out;
  }
}

TEST(Run, MemoryAndErrorsAreAsOnAGpu) {
  const ScratchFolder here;
  const Ran ran = run_program("--checks none", "runtime_program memory", here);
  EXPECT_EQ(ran.out.find("exit status 1"), ran.out.npos) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("2 launches of 1 kernel "), ran.out.npos) << ran.out;
}

TEST(Run, TheDeviceIsTheOneThatIsAskedFor) {
  const ScratchFolder here;
  const Ran h100 = run_program("", "runtime_program device", here);
  EXPECT_EQ(h100.status, 0) << h100.out << h100.err;
  EXPECT_EQ(h100.out.find("9.0 132 232448 NVIDIA H100"), 0u) << h100.out;
  const Ran a100 = run_program("--arch sm_80", "runtime_program device", here);
  EXPECT_EQ(a100.out.find("8.0 108 166912 NVIDIA A100"), 0u) << a100.out;
}

TEST(Run, ObjectsOfTheDeviceHeapLiveFromLaunchToLaunch) {
  const ScratchFolder here;
  for (const char* checks : {"all", "none"}) {
    const Ran ran = run_program(std::string("--checks ") + checks, "runtime_program heap good", here);
    EXPECT_EQ(ran.status, 0) << checks << ran.out << ran.err;
    EXPECT_NE(ran.out.find("3 launches of 3 kernels"), ran.out.npos) << ran.out;
  }
}

TEST(Run, FaultsOnObjectsOfEarlierLaunchesAreTold) {
  const std::pair<const char*, const char*> faults[] = {
      {"past", "0 bytes past the end of an object of 40 bytes of the device's heap"},
      {"freed", "byte 0 of an object of 40 bytes of the device's heap that was freed"},
      {"twice",
       "where no object of the device's heap begins: byte 0 of an object of 40 bytes of the device's heap "
       "that was freed"},
      {"unwritten", "never written"}};
  const ScratchFolder here;
  for (const auto& [fault, said] : faults) {
    const Ran ran = run_program("", std::string("runtime_program heap ") + fault, here);
    EXPECT_EQ(ran.status, 1) << fault << ran.out;
    EXPECT_NE(ran.out.find(said), ran.out.npos) << fault << ran.out;
  }
}

TEST(Run, WhatIsNotSupportedIsSaidAndNoPass) {
  const ScratchFolder here;
  const Ran ran = run_program("", "runtime_program refused", here);
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_NE(ran.err.find("has a block of 2000 threads; 1 to 1024 are possible"), ran.err.npos) << ran.err;
  EXPECT_NE(ran.out.find("exit status 0"), ran.out.npos) << ran.out << ran.err;
}

TEST(Run, VariablesOfDeviceCodeLiveAsLongAsTheProgram) {
  const ScratchFolder here;
  for (const char* checks : {"all", "none"}) {
    const Ran ran = run_program(std::string("--checks ") + checks, "runtime_program variables", here);
    EXPECT_EQ(ran.status, 0) << checks << ran.out << ran.err;
    EXPECT_NE(ran.out.find("5 launches of 3 kernels"), ran.out.npos) << checks << ran.out;
  }
}

TEST(Run, AModuleThatTheProgramLoadsHasItsVariables) {
  const ScratchFolder here;
  for (const char* checks : {"all", "none"}) {
    const Ran ran = run_program(std::string("--checks ") + checks, "runtime_program loaded-module", here);
    EXPECT_EQ(ran.status, 0) << checks << ran.out << ran.err;
    EXPECT_NE(ran.out.find("3 launches of 1 kernel "), ran.out.npos) << checks << ran.out;
  }
}

TEST(Run, ARaceOnAVariableIsFound) {
  const ScratchFolder here;
  const Ran ran = run_program("", "runtime_program variable-race", here);
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_NE(ran.out.find("race: words["), ran.out.npos) << ran.out;
}

TEST(Run, WhatIsNotFiniteIsToldWithItsOriginThoughMemoryHasNoType) {
  const ScratchFolder here;
  const Ran ran = run_program("", "runtime_program quotients 90", here);
  EXPECT_EQ(ran.status, 1) << ran.out;
  EXPECT_NE(ran.out.find("1 non-finite element of allocation 2"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("exp-overflow"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("allocation 2[33]"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("runtime_program.cu:"), ran.out.npos) << ran.out;
  // Finite, and one that the host brings along.
  for (const char* largest : {"3", "nan"}) {
    const Ran other = run_program("", std::string("runtime_program quotients ") + largest, here);
    EXPECT_EQ(other.status, 0) << largest << other.out << other.err;
  }
}

TEST(Run, WhatNothingWroteIsToldWhereTheHostReadsItOrAnOutputComesOfIt) {
  const ScratchFolder here;
  const std::pair<const char*, const char*> copies[] = {
      {"part",
       "4 of the bytes of allocation 2 that the program copies to the host were never written, from byte 248 "
       "to "},
      {"none", "252 of the bytes of allocation 2 that the program copies to the host were never written"},
      {"copied", "4 of the bytes of allocation 3 that the program copies to the host were never written"}};
  for (const auto& [how, said] : copies)
    for (const char* options : {"", "--copies"}) {
      const Ran ran = run_program(options, std::string("runtime_program tail ") + how, here);
      EXPECT_EQ(ran.status, *options ? 1 : 0) << how << ran.out;
      EXPECT_NE(ran.out.find((*options ? "never-written: " : "note: ") + std::string(said)), ran.out.npos)
          << how << ran.out << ran.err;
    }
  const Ran moved = run_program("", "runtime_program tail moved", here);
  EXPECT_EQ(moved.status, 1) << moved.out;
  EXPECT_NE(moved.out.find("unwritten-output"), moved.out.npos) << moved.out;
  for (const char* how : {"whole", "later", "unread"}) {
    const Ran ran = run_program("--copies", std::string("runtime_program tail ") + how, here);
    EXPECT_EQ(ran.status, 0) << how << ran.out << ran.err;
    EXPECT_EQ(ran.out.find("never written"), ran.out.npos) << how << ran.out;
  }
}

TEST(Run, SameDigestsEveryTime) {
  const ScratchFolder here;
  std::string digests[2];
  for (std::string& digest : digests) {
    ASSERT_EQ(run_program("--checks none --digests d.txt", "row_sums", here).status, 0);
    digest = read_file(here / "d.txt");
  }
  EXPECT_EQ(digests[0].find("allocation 1: 20000 bytes, "), 0u) << digests[0];
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Run, AProgramThatAsksForNoGpuIsBadInput) {
  const ScratchFolder here;
  const Ran ls = run_assay("run -- /bin/ls", here);
  EXPECT_EQ(ls.status, 2);
  EXPECT_NE(ls.err.find("is it linked with -cudart shared?"), ls.err.npos) << ls.err;
  const Ran none = run_assay("run -- ./no-such-program", here);
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("./no-such-program: cannot be started"), none.err.npos) << none.err;
}

}  // namespace
}  // namespace assay
