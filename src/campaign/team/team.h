// The processes of one campaign on several hosts, as mpirun starts them. The first leads: it draws, judges
// and stores; the others do what it asks of them.
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace assay {

struct TeamMessage {
  int from = 0;
  std::string text;
};

/// One member's view. One call at a time, from any thread; nothing waits, so that a member without work costs
/// nothing but a look now and then.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;  ///< 0: the first
  virtual int size() const = 0;
  virtual void send(int to, const std::string& text) = 0;
  /// A message that has come; messages of one member come in their order.
  virtual std::optional<TeamMessage> receive() = 0;
};

/// How many processes the launcher says it started (Open MPI, MPICH and what follows them, Slurm's PMIx); 1
/// where there is none.
int launched_processes();

/// The team that this process was started in, through MPI's plugin (mpi/assay_mpi.c). Null where it was
/// started alone. Throws BadInput where the plugin is not there, and says how to build it.
std::unique_ptr<Team> launched_team();

}  // namespace assay
