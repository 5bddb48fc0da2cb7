// A recurrence as a list of events. The operator itself is the list where every token decays the state, is
// written, and is read, in one event each; a kernel that reads too early, drops a token, forgets a chunk or
// runs on over a boundary computes another list. Any list is evaluated by the operator itself, on a longer
// sequence whose tokens do one thing at a time.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "src/verification/diagnosis/prediction.h"

namespace assay {

/// Rows of the [B,T] tokens; those outside: none. In one event the state decays, then is written, and what
/// the operator reads at a token is read as the operator reads it.
struct Event {
  int64_t decay = -1, write = -1, read = -1;
  bool reset = false;  ///< what was in the state is gone before this event's write
};
using Events = std::vector<Event>;

/// One list per sequence.
struct Schedule {
  std::vector<Events> sequences;
  bool initial_state = true;  ///< else it starts from zero
  bool final_state = true;    ///< else its cotangent is zero, and nothing is predicted of it
};

/// A token in its sequence: `t` of `length`, at row `row`.
struct TokenPlace {
  int64_t t = 0, length = 0, row = 0, sequence = 0;
};
/// The events of each token, one after another.
Schedule schedule_of(const FailingRun&, const std::function<Events(const TokenPlace&)>& events);

/// Is the operator a recurrence over tokens that an event list can say?
bool is_schedulable(const FailingRun&);
/// Has it decays that can clear a state?
bool can_reset(const FailingRun&);
/// Are its outputs linear in what was written, so that parts of a state may be followed apart?
bool is_linear(const FailingRun&);
/// Does it read the state before this token's decay and write?
bool reads_before_write(const FailingRun&);

std::optional<Prediction> evaluate_schedule(const FailingRun&, const Schedule&);

}  // namespace assay
