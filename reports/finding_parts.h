// What every renderer says of a finding, read from its JSON. Private to reports/*.cpp.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/section.h"

namespace assay {

constexpr size_t kKernelsInTitle = 3;  ///< where there are more, their number stands there

/// The findings of a fuzz run; of a verification itself, unless it passed.
std::vector<const nlohmann::json*> findings_in(const nlohmann::json& result);
/// The rule a finding falls under: its top diagnosis, else the kind of origin, trap or check, else of fault.
Rule rule_of(const nlohmann::json& finding);
/// The SourceLocation to point at: of the origin, the trap, the check's finding, the likeliest line, the
/// kernel's entry, as the line of the user's own that holds it; null where none is known. Its file is not
/// empty.
nlohmann::json place_of(const nlohmann::json& finding);
/// One line a person reads first.
std::string headline_of(const nlohmann::json& finding);
/// "cause masked-lane-overflow (60 %): exp of ..", as the console has it; empty without a diagnosis.
std::string cause_sentence_of(const nlohmann::json& finding);
/// What is the same in every run that finds it (its cause, where an older document has no identity).
std::string identity_in(const nlohmann::json& finding);
/// Why a fuzz run says less than it should: interrupted, too few cases of a kernel; empty: it does not.
std::string shortfall_of(const nlohmann::json& run);
/// The baseline has it too.
bool is_known(const nlohmann::json& finding);

}  // namespace assay
