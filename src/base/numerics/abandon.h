// Long work that its caller may give up while it runs: the caller lends a flag, the loops look at it now and
// then.
#pragma once
#include <atomic>
#include <exception>

namespace assay {

/// What long work throws once its caller has given it up.
class Abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "given up by the caller"; }
};

/// Not 0: what this thread does is not wanted any more. Null: nobody gives it up.
inline thread_local const std::atomic<int>* abandon_flag = nullptr;

inline bool is_abandoned() {
  return abandon_flag && abandon_flag->load(std::memory_order_relaxed) != 0;
}
inline void require_wanted() {
  if (is_abandoned()) throw Abandoned();
}

/// Lends the flag to this thread while it lives. A thread that another one starts for its own work is lent
/// that one's.
class LentFlag {
 public:
  explicit LentFlag(const std::atomic<int>* flag) : before_(abandon_flag) { abandon_flag = flag; }
  ~LentFlag() { abandon_flag = before_; }
  LentFlag(const LentFlag&) = delete;
  LentFlag& operator=(const LentFlag&) = delete;

 private:
  const std::atomic<int>* before_;
};

}  // namespace assay
