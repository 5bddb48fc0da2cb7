// Fuzzing: draws cases, verifies them, checks the properties, shrinks what fails and keeps it. The loop (time
// budget, feedback, fair shares) is ours; RapidCheck's generators and shrinkables draw and simplify.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/campaign/engine/shard.h"
#include "src/campaign/team/leader.h"
#include "src/result/baseline.h"
#include "src/result/fuzz_run.h"
#include "src/result/verification.h"
#include "src/verification/diagnosis/origin.h"

namespace assay {

struct FuzzOptions {
  int64_t cases = 0;   ///< over all kernels together; 0: until `time_s` has passed
  double time_s = 60;  ///< seconds; used where cases = 0
  uint64_t seed = 0;   ///< with `cases`, it and the corpus in `db` decide the run, whatever `jobs` is
  int jobs = 0;        ///< cases in flight; 0: all cores. Each case runs on one thread
  /// Of a run that is shared out: `cases` are those of all shards, of which each draws its own from what it
  /// has seen itself. All have the one seed.
  Shard shard;
  std::string db = "assay.db";  ///< a file or a postgresql:// URL; empty: nothing is stored
  bool known_first = false;     ///< before anything is drawn, rerun what earlier runs found (stored in `db`)
  const Baseline* baseline = nullptr;  ///< what it does not know is not put together with what it knows
  std::vector<Case> first;  ///< cases of earlier findings to rerun before that; of other kernels: left out
  bool far = false;  ///< some cases run a few blocks with indices past 2^31: for a machine that can (vm)
  int shrink_evaluations = 240;  ///< most verifications one finding's shrinking may cost
  /// Set from outside, as by a signal: the run ends with the cases in flight, and returns what it has.
  const std::atomic<int>* interrupted = nullptr;
  /// Does the trials, `jobs` at once; null: this process does.
  Leader* leader = nullptr;
  Backend* peer = nullptr;  ///< a second backend whose bits must equal the first's
  OriginOptions origin;     ///< of tracing a non-finite value
  /// By kernel: what a replay line needs beside the token (--ptx FILE --plan FILE).
  std::map<std::string, std::string> replay_suffixes;
  int64_t min_cases = 0;             ///< of each kernel: with fewer that were judged the run is inconclusive
  std::optional<Checkout> checkout;  ///< FuzzRun::checkout
};

/// What a progress line needs.
struct FuzzProgress {
  int64_t cases = 0, findings = 0, shrinking = 0;
  double seconds = 0;
  double fraction = 0;  ///< of the budget spent, 0 to 1
};
/// "38 cases, 1 finding (1 shrinking), 20 s"
std::string text_of(const FuzzProgress&);

/// All output goes through here. Calls come one at a time, from any of the fuzzing threads. What a listener
/// throws ends the run and leaves fuzz().
class Listener {
 public:
  virtual ~Listener() = default;
  /// Once, before the first case, with the seed to repeat the run.
  virtual void started(const std::vector<const Kernel*>&, const FuzzOptions&, const std::string& backend);
  virtual void progress(const FuzzProgress&);
  /// A fault with a cause not seen before in this run; already committed to the database, if its server is
  /// not away.
  virtual void found(const Verification&);
  /// The same fault, shrunk; already committed.
  virtual void shrunk(const Verification& original, const Verification& smaller);
  /// There was not the memory for a case; the run goes on without it.
  virtual void left_out(const Case&);
  /// The database's server went away: the run goes on, and writes wait. With an empty text it is back.
  virtual void database_away(const std::string& why);
  /// The database failed (a full disk, a lock that is not released, a server that stays away): the run goes
  /// on, and stores nothing more.
  virtual void database_lost(const std::string& why);
};

/// Fuzzes the kernels with equal numbers of cases each, or, where `time_s` is the budget, with equal times.
/// `Backend::run` is called from `jobs` threads at once. Findings come back shrunk, one per cause, in the
/// order of discovery.
/// Throws BadInput where the database cannot be opened, where a kernel accepts none of the cases drawn for
/// it, or where no case could be judged. Once there are findings, what fails ends the run
/// (FuzzRun::ended_early), and they are returned; so does an interruption.
FuzzRun fuzz(const std::vector<const Kernel*>&, Backend&, const FuzzOptions&, Listener&);

}  // namespace assay
