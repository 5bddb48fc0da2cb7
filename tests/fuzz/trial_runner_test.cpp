#include "fuzz/trial_runner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "tests/fuzz/subject.h"
#include "tests/team/thread_team.h"

namespace assay {
namespace trial_runner_test {

/// All that a run says but how long it took.
nlohmann::json without_times(const FuzzRun& run) {
  nlohmann::json json = to_json(run);
  const std::function<void(nlohmann::json&)> strip = [&](nlohmann::json& node) {
    for (const char* name : {"seconds", "seconds_reference", "seconds_kernel", "jobs"})
      if (node.is_object()) node.erase(name);
    for (nlohmann::json& child : node)
      if (child.is_structured()) strip(child);
  };
  strip(json);
  return json;
}

FuzzOptions with_cases(int64_t cases) {
  FuzzOptions options;
  options.cases = cases;
  options.seed = 11;
  options.jobs = 2;
  options.db = "";
  return options;
}

/// By a team of so many, every member with a backend of its own, as another host has one.
FuzzRun fuzzed_by(int size, const std::string& fault, FuzzOptions options) {
  const Kernel kernel = test::subject_kernel();
  const std::vector<const Kernel*> kernels{&kernel};
  test::ThreadTeam team(size, [&](Team& member) {
    test::SubjectBackend backend(fault);
    serve_trials(member, kernels, backend, options);
  });
  Leader leader(team.first());
  FuzzOptions led = options;
  led.leader = &leader;
  led.jobs = leader.members();
  test::SubjectBackend idle("");
  Listener listener;
  FuzzRun run = fuzz(kernels, idle, led, listener);
  EXPECT_EQ(idle.runs(), 0) << "the leader runs no case itself";
  return run;
}

FuzzRun fuzzed_alone(const std::string& fault, const FuzzOptions& options) {
  const Kernel kernel = test::subject_kernel();
  test::SubjectBackend backend(fault);
  Listener listener;
  return fuzz({&kernel}, backend, options, listener);
}

TEST(TrialRunnerCampaign, ATeamOfAnySizeFindsWhatOneProcessFinds) {
  for (const std::string fault : {"", "term dropped"}) {
    const nlohmann::json alone = without_times(fuzzed_alone(fault, with_cases(32)));
    EXPECT_EQ(alone.at("findings").empty(), fault.empty());
    for (const int size : {2, 5})
      EXPECT_EQ(without_times(fuzzed_by(size, fault, with_cases(32))), alone)
          << fault << ", team of " << size;
  }
}

TEST(TrialRunner, WhatAMemberRefusesIsRefusedWhereItWasAskedFor) {
  const Kernel kernel = test::subject_kernel();
  const std::vector<const Kernel*> none, kernels{&kernel};
  const FuzzOptions options = with_cases(1);
  test::ThreadTeam team(2, [&](Team& member) {
    test::SubjectBackend backend;
    serve_trials(member, none, backend, options);
  });
  Leader leader(team.first());
  SharedTrials trials(leader, kernels);
  Trial trial;
  trial.kernel = &kernel;
  trial.case_.kernel = kernel.name;
  try {
    trials.run(trial);
    ADD_FAILURE() << "a member without the kernel ran it";
  } catch (const BadInput& reason) {
    EXPECT_NE(std::string(reason.what()).find("start all with the same command"), std::string::npos)
        << reason.what();
  }
}

}  // namespace trial_runner_test
}  // namespace assay
