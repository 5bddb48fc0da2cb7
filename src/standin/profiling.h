// Whoever follows a program's calls of the driver is told of them, as CUPTI tells.
#pragma once
#include "src/standin/profiling_abi.h"

namespace assay::standin {

/// A call, from its begin to its end.
class Told {
 public:
  Told(DriverCall, const char* function, const void* parameters, const char* symbol = nullptr);
  ~Told();
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  /// What the call returns.
  int ended(int status) { return status_ = status; }

 private:
  void tell(int site);

  DriverCall call_;
  ToldCall told_{};
  int status_ = 0;
  uint64_t kept_ = 0;
};

/// Loads what CUDA_INJECTION64_PATH names, once, as the driver's first call does.
void load_injection();

}  // namespace assay::standin
