// Several things are to be written, and one that cannot be must not keep the others from it.
#pragma once
#include <exception>

namespace assay::cli {

class FirstFailure {
 public:
  /// Runs it; what it throws is kept, the first time.
  template <typename Work>
  void attempt(Work&& work) {
    try {
      work();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

}  // namespace assay::cli
