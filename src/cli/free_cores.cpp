#include "src/cli/free_cores.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace assay::cli {
namespace {

/// "max 100000" or "200000 100000": microseconds of processor time in so many.
int cores_of_group() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return std::max(1, static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period)));
}

/// Threads that run or could run now, on the whole host, this one included; 0: not known.
int runnable() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen, running;
  if (!(file >> one >> five >> fifteen >> running)) return 0;
  return std::atoi(running.c_str());  // "3/512"
}

}  // namespace

int own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof set, &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(allowed, cores_of_group()));
}

int free_cores() {
  constexpr int kLooks = 3;
  constexpr std::chrono::milliseconds kBetween{2};
  int busy = runnable();
  for (int look = 1; look < kLooks && busy > 1; ++look) {
    std::this_thread::sleep_for(kBetween);
    busy = std::min(busy, runnable());  // what runs for a moment keeps no core busy
  }
  const int host = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int others = std::max(0, busy - 1), own = own_cores();
  // Of a host that lends a part, the same part of its load.
  return std::max(1, own - static_cast<int>(std::lround(static_cast<double>(others) * own / host)));
}

}  // namespace assay::cli
