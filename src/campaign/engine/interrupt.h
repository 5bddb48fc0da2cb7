// Ctrl-C during a long run: the first asks for an orderly end, the second ends the process.
#pragma once
#include <atomic>

namespace assay {

/// While one of these lives, the first SIGINT or SIGTERM is only noted, and a line on standard error says so;
/// the next one acts as usual. A signal that the parent had ignored stays ignored.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal noted; 0: none.
  const std::atomic<int>& signal() const;
};

}  // namespace assay
