#include "src/result/fuzz_run.h"

#include "src/case/case_fields.h"
#include "src/result/document.h"
#include "src/result/identity.h"

namespace assay {

nlohmann::json to_json(const FuzzRun& run) {
  return document("fuzz", run);
}

FuzzRun fuzz_run_from_json(const nlohmann::json& json) {
  return read_document<FuzzRun>("fuzz", json);
}

}  // namespace assay
