// Time that this thread has computed, whatever else the host does: what searches are limited by.
#pragma once
#include <ctime>

namespace assay {

inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace assay
