#include "src/verification/verify/triage.h"

#include <fmt/format.h>

namespace assay {
namespace {

std::vector<std::string> evidence_lines(const EngineEvidence& e) {
  std::vector<std::string> lines;
  lines.push_back(e.outside ? "the machine's own values are at fault"
                            : "the machine is within the bound everywhere");
  if (e.one_trapped)
    lines.push_back("only one of GPU and machine ran to its end");
  else if (e.differing > 0)
    lines.push_back(fmt::format("GPU against machine: {} elements differ", e.differing));
  else
    lines.push_back("GPU against machine: same bits");
  if (e.peer_differing > 0)
    lines.push_back(fmt::format("{} runs on the GPU: up to {} elements differ between them", e.peer_runs,
                                e.peer_differing));
  else if (e.peer_runs > 1)
    lines.push_back(fmt::format("{} runs on the GPU: same bits", e.peer_runs));
  if (e.race)
    lines.push_back("a race on the machine: " + e.race->message);
  else if (e.checked_races)
    lines.push_back("no race on the machine");
  return lines;
}

}  // namespace

Triage triage_of(const EngineEvidence& e) {
  Triage t;
  t.evidence = evidence_lines(e);
  const bool differs = e.differing > 0 || e.one_trapped;
  if (e.peer_differing > 0 || (differs && e.race)) {
    t.fault = Fault::race;
    t.explanation =
        e.race ? "the result depends on the order of threads or blocks: they do not wait for each other"
               : "the GPU does not repeat itself: threads or blocks do not wait for each other";
  } else if (differs && e.outside) {
    t.fault = Fault::both;
    t.explanation =
        "two findings: the kernel's PTX itself is wrong, and the GPU runs something else than that PTX";
  } else if (differs) {
    t.fault = Fault::compiler_or_hardware;
    t.explanation =
        "the PTX is right, run as it is written; what was compiled from it, or the hardware, gives other "
        "bits";
  } else if (e.outside) {
    t.fault = Fault::kernel;
    t.explanation = "both engines give the same wrong bits: the kernel, or what generated its PTX, is wrong";
  } else {
    t.fault = e.race ? Fault::race : Fault::none;
    t.explanation =
        e.race ? "a race that did not show in these runs" : "this case shows no fault on either engine";
  }
  return t;
}

}  // namespace assay
