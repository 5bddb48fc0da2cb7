#include "src/result/fuzz_run.h"

#include <algorithm>
#include <iterator>

#include "src/case/case_fields.h"
#include "src/result/document.h"
#include "src/result/identity.h"

namespace assay {

namespace {

template <typename T>
void append(std::vector<T>&& more, std::vector<T>& to) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace

void add_run(FuzzRun&& more, FuzzRun& to) {
  append(std::move(more.kernels), to.kernels);
  to.cases += more.cases, to.passed += more.passed, to.undecided += more.undecided, to.domain += more.domain;
  to.seconds += more.seconds, to.not_shrunk += more.not_shrunk;
  append(std::move(more.findings), to.findings);
  for (PropertyRow& row : more.properties) {
    const auto known = std::find_if(to.properties.begin(), to.properties.end(),
                                    [&](const PropertyRow& other) { return other.name == row.name; });
    if (known == to.properties.end())
      to.properties.push_back(std::move(row));
    else
      known->checked += row.checked, known->failed += row.failed;
  }
  append(std::move(more.coverage), to.coverage);
  append(std::move(more.tightness), to.tightness);
  append(std::move(more.reached), to.reached);
  append(std::move(more.reruns), to.reruns);
  append(std::move(more.too_few), to.too_few);
  append(std::move(more.kernel_properties), to.kernel_properties);
  if (to.ended_early.empty()) to.ended_early = std::move(more.ended_early);
}

nlohmann::json to_json(const FuzzRun& run) {
  return document("fuzz", run);
}

FuzzRun fuzz_run_from_json(const nlohmann::json& json) {
  return read_document<FuzzRun>("fuzz", json);
}

}  // namespace assay
