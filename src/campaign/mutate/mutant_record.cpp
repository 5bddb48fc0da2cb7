#include "src/campaign/mutate/mutant_record.h"

#include <fmt/format.h>

#include "src/base/fields/json_fields.h"

namespace assay {

nlohmann::json to_json(const MutantResult& result) {
  return JsonWriter::json_of(const_cast<MutantResult&>(result));
}

MutantResult mutant_result_from_json(const nlohmann::json& record) try {
  MutantResult result;
  JsonReader::read(record, result, "");
  return result;
} catch (const BadInput& error) {
  throw BadInput(fmt::format("a mutant's record cannot be read ({}); remove the journal", error.what()));
}

}  // namespace assay
