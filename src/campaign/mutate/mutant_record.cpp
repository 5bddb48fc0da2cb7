#include "src/campaign/mutate/mutant_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// The fields of the record, once for both directions.
template <typename Io>
void fields(Io&& io, MutantResult& result) {
  Mutant& m = result.mutant;
  io("born", result.born);
  io("tried", result.tried);
  io("killed_by_case", result.killed_by_case);
  io("id", m.id);
  io("change", m.change);
  io("file", m.where.file);
  io("line", m.where.line);
  io("ptx_line", m.where.ptx_line);
  io("function", m.where.function);
  io("frames", m.where.frames);
  io("source_text", m.source_text);
  io("original", m.original);
  io("replacement", m.replacement);
  io("outcome", m.outcome);
  io("reason", m.reason);
  io("token", m.token);
  io("cases", m.cases);
  io("reached_by", m.reached_by);
}

}  // namespace

nlohmann::json to_json(const MutantResult& result) {
  nlohmann::json record;
  fields([&](const char* name, const auto& field) { record[name] = field; },
         const_cast<MutantResult&>(result));
  return record;
}

MutantResult mutant_result_from_json(const nlohmann::json& record) try {
  MutantResult result;
  fields([&](const char* name, auto& field) { record.at(name).get_to(field); }, result);
  return result;
} catch (const nlohmann::json::exception& error) {
  throw BadInput(fmt::format("a mutant's record cannot be read ({}); remove the journal", error.what()));
}

}  // namespace assay
