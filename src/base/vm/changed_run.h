// Runs of a program in which instructions take or give something else than their text says, as a slip in the
// source would have made them. Nothing is compiled again: a run costs what its launches cost.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/vm/machine.h"
#include "src/base/vm/moved_run.h"
#include "src/base/vm/output_element.h"
#include "src/base/vm/signature.h"

namespace assay::vm {

struct Code;

/// What stands in a value's place. Of predicates zero and one are false and true, negated is the other one.
enum class Instead : uint8_t {
  zero,
  one,
  negated,
  next,      ///< one more; of an address, past what is accessed there
  previous,  ///< one less
  half,      ///< of unsigned integers
  twice,
  another  ///< what another register holds
};

/// One op, wherever and as often as it runs, in every launch of that code.
struct OpChange {
  enum class Of : uint8_t { source, result, guard } of = Of::source;
  size_t op = 0;      ///< into Code::ops
  size_t source = 0;  ///< into Signature::reads
  Instead instead = Instead::zero;
  Slot by = no_slot;  ///< Instead::another
};

class ChangedRuns {
 public:
  /// Runs the program once as it is. Throws BadInput as run() does.
  ChangedRuns(const Program&, const TensorMap& inputs, const MachineOptions&);
  ~ChangedRuns();
  ChangedRuns(const ChangedRuns&) = delete;
  ChangedRuns& operator=(const ChangedRuns&) = delete;

  /// False: it trapped, or is too large to be run again and again.
  bool can_run() const { return can_run_; }
  size_t launches() const;
  const Code& code(size_t launch) const;
  /// By op of a launch: how many warps came to it; and of guards, whether they held and failed.
  struct Executed {
    std::vector<uint32_t> times;
    std::vector<uint8_t> held, failed;
  };
  const Executed& executed(size_t launch) const { return executed_[launch]; }
  /// Of the run as it is, rounded as the machine rounds.
  const RealOutputs& unchanged() const { return unchanged_; }
  /// By launch the changes of its code; launches of the same code share those of the first. None after a
  /// trap.
  using Changes = std::map<size_t, std::vector<OpChange>>;
  std::optional<RealOutputs> run(const Changes&);

  /// Blocks that stand behind one of the elements, the fewest, can run alone from now on. Returns those of
  /// the elements behind which these stand and no others; none where that leaves out no block.
  std::vector<OutputElement> watch(const std::vector<OutputElement>&);
  /// As run(), those blocks alone: what the watched elements are; others are not to be read.
  std::optional<RealOutputs> run_watched(const Changes&);

 private:
  struct State;
  struct Part;
  std::optional<RealOutputs> run(const Changes&, const Part&);
  RealOutputs outputs() const;

  std::unique_ptr<State> state_;
  std::vector<Executed> executed_;
  RealOutputs unchanged_;
  bool can_run_ = false;
};

}  // namespace assay::vm
