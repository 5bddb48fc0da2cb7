// Results of parts of one campaign (--shard) put together as the result of the whole.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace assay {

/// A result and the file it was read from, for messages.
struct ResultPart {
  std::string source;
  const nlohmann::json* document;
};

/// Fuzz runs, sweeps, mutation runs or known defects tried; all of one kind and one campaign: the same
/// seed, kernels and backend. Counts are summed, findings with one kernel and cause are one, times are
/// those of the part that took longest. Of what was reached of so and so much, the largest part is a lower
/// limit. Throws BadInput where a part is of another campaign, or there twice.
nlohmann::json merged(const std::vector<ResultPart>&);

}  // namespace assay
