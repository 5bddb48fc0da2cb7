// Small PTX kernels under the checks: a defective body and its repaired twin.
#pragma once
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/vm/checks/checks.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {

struct CheckedRun {
  CheckReport report;
  std::optional<Trap> trap;
  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (const CheckFinding& finding : report.findings) all.emplace_back(name_of(finding.kind));
    return all;
  }
  const CheckFinding* first(const std::string& kind) const {
    for (const CheckFinding& finding : report.findings)
      if (name_of(finding.kind) == kind) return &finding;
    return nullptr;
  }
};

inline CheckedRun run_checked(const SmallKernel& kernel, const Checks& checks = {}) {
  TensorMap inputs;
  const Program plan = plan_of(kernel, inputs);
  CheckedRun run;
  run.report = run_checked(plan, inputs, {kernel.arch, 1, kernel.budget}, checks, &run.trap);
  return run;
}

/// PTX line of the kernel's text that holds `marker`; 0: none.
inline int line_with(const SmallKernel& kernel, const std::string& marker) {
  std::istringstream text(text_of(kernel));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.find(marker) != std::string::npos) return number;
  }
  return 0;
}

/// A twin: the body with each "@" line as it stands, and the repaired one, where `repair` replaces `fault`.
struct Twin {
  const char* name;
  const char* kind;  ///< of the finding
  const char* body;  ///< repaired where "FAULT" is replaced by `repair`, broken where it is by `fault`
  const char* fault;
  const char* repair;
  const char* declarations = "";
  uint32_t threads = 64, blocks = 1, shared_bytes = 0;
};

inline SmallKernel kernel_of(const Twin& twin, const std::string& in_place) {
  SmallKernel kernel;
  kernel.declarations = twin.declarations;
  kernel.body = twin.body;
  if (const size_t at = kernel.body.find("FAULT"); at != std::string::npos)
    kernel.body.replace(at, 5, in_place);
  kernel.threads = twin.threads;
  kernel.blocks = twin.blocks;
  kernel.shared_bytes = twin.shared_bytes;
  kernel.b = {3};
  return kernel;
}

inline std::string all_messages(const CheckReport& report) {
  std::string text;
  for (const CheckFinding& finding : report.findings)
    text += std::string(name_of(finding.kind)) + ": " + finding.message + "\n";
  return text;
}

}  // namespace assay::vm
