// Who does trials: this process, or the other members of a team.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fuzz/trial.h"
#include "src/campaign/team/leader.h"

namespace assay {

/// Each function is called from several threads at once.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  virtual TrialReport run(const Trial&) = 0;
  virtual std::optional<Verification> with_same_cause(const TrialReport& original, const Case&,
                                                      double seconds) = 0;
  virtual Verification fully_traced(const TrialReport& original, const Verification& smallest,
                                    double seconds) = 0;
};

/// trial.h, in this process.
class OwnTrials final : public TrialRunner {
 public:
  OwnTrials(Backend& backend, const FuzzOptions& options) : backend_(backend), options_(options) {}
  TrialReport run(const Trial&) override;
  std::optional<Verification> with_same_cause(const TrialReport&, const Case&, double seconds) override;
  Verification fully_traced(const TrialReport&, const Verification&, double seconds) override;

 private:
  Backend& backend_;
  const FuzzOptions& options_;
};

/// The same by the members of the leader's team, who have the same kernels: serve_trials.
class SharedTrials final : public TrialRunner {
 public:
  SharedTrials(Leader& leader, const std::vector<const Kernel*>& kernels)
      : leader_(leader), kernels_(kernels) {}
  TrialReport run(const Trial&) override;
  std::optional<Verification> with_same_cause(const TrialReport&, const Case&, double seconds) override;
  Verification fully_traced(const TrialReport&, const Verification&, double seconds) override;

 private:
  Leader& leader_;
  const std::vector<const Kernel*>& kernels_;
};

/// What a member does, until its leader lets it go. Kernels, backend and options are those of the leader.
void serve_trials(Team&, const std::vector<const Kernel*>&, Backend&, const FuzzOptions&);

}  // namespace assay
