#include "src/result/schema.h"

#include "src/base/fields/json_schema.h"
#include "src/case/case_fields.h"
#include "src/result/document.h"
#include "src/result/fuzz_run.h"
#include "src/result/identity.h"
#include "src/result/inspection.h"
#include "src/result/mutation.h"
#include "src/result/sweep_result.h"
#include "src/result/trend.h"

namespace assay {
namespace {

struct Tool {
  std::string name, version, commit;
};
template <typename Io>
void fields(Io& io, Tool& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(version);
  ASSAY_FIELD(commit);
}

/// A document's frame, then its fields.
template <typename Result>
SchemaJson document_of(const char* kind, SchemaJson& definitions) {
  SchemaWriter writer{definitions, {}, {}};
  writer.properties["schema"] = {{"const", kResultSchema}};
  writer.properties["kind"] = {{"const", kind}};
  writer.properties["tool"] = SchemaWriter::schema_of<Tool>(definitions);
  writer.required = {"schema", "kind", "tool"};
  Result result;
  fields(writer, result);
  return writer.object();
}

}  // namespace

SchemaJson result_schema() {
  SchemaJson definitions = SchemaJson::object(), kinds = SchemaJson::array();
  const auto add = [&](const char* kind, SchemaJson schema) {
    definitions[kind] = std::move(schema);
    kinds.push_back({{"$ref", std::string("#/$defs/") + kind}});
  };
  add("verification", document_of<Verification>("verification", definitions));
  add("fuzz", document_of<FuzzRun>("fuzz", definitions));
  SchemaJson sweep = document_of<Sweep>("sweep", definitions);
  sweep["properties"]["worst"] = {
      {"type", "array"},
      {"items", {{"$ref", "#/$defs/verification"}}},
      {"description", "of each kernel and format the cell of the largest ratio, in full"}};
  sweep["required"].push_back("worst");
  add("sweep", std::move(sweep));
  add("mutation", document_of<MutationRun>("mutation", definitions));
  add("trend", document_of<Trend>("trend", definitions));
  add("inspection", document_of<Inspection>("inspection", definitions));
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Result of assay, schema " + std::to_string(kResultSchema)},
          {"oneOf", kinds},
          {"$defs", definitions}};
}

}  // namespace assay
