// What a search spends, counted and not timed: what it tries, and so what it names, is then the same whatever
// else the host does.
#pragma once

namespace assay {

/// Of this thread, in seconds that what was counted takes on a usual core. What other threads do for it the
/// caller's counts.
inline thread_local double seconds_counted = 0;

inline void count_work(double times, double nanoseconds) {
  seconds_counted += 1e-9 * times * nanoseconds;
}
inline double counted_seconds() {
  return seconds_counted;
}

}  // namespace assay
