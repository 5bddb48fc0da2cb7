#include "src/result/verification.h"

#include "src/case/case_fields.h"
#include "src/result/document.h"
#include "src/result/identity.h"

namespace assay {

nlohmann::json to_json(const Verification& result) {
  return document("verification", result);
}

Verification verification_from_json(const nlohmann::json& json) {
  return read_document<Verification>("verification", json);
}

}  // namespace assay
