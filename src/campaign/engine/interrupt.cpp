#include "src/campaign/engine/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace assay {
namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "written by a signal handler");

constexpr int kSignals[] = {SIGINT, SIGTERM};

void note(int signal) {
  if (noted.exchange(signal) != 0) return;
  for (const int s : kSignals) std::signal(s, SIG_DFL);
  constexpr std::string_view kLine = "\nassay: ending with the cases in flight; once more ends at once\n";
  if (write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) return;  // nobody listens
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  for (const int s : kSignals)
    if (std::signal(s, note) == SIG_IGN) std::signal(s, SIG_IGN);
}

Interrupt::~Interrupt() {
  for (const int s : kSignals)
    if (std::signal(s, SIG_DFL) == SIG_IGN) std::signal(s, SIG_IGN);
}

const std::atomic<int>& Interrupt::signal() const {
  return noted;
}

}  // namespace assay
