// Small results as documents, for the tests of the renderers.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace assay::test {

/// A verification that passed; o has T tokens.
nlohmann::json passed_verification(int64_t T = 80);
/// A verification with NaN elements, an origin and a diagnosis.
nlohmann::json nan_verification();
/// A verification whose kernel is right, with an o in the inputs' file that the reference contradicts.
nlohmann::json contradicted_verification();
/// A fuzz run of two kernels with `findings` findings of the first.
nlohmann::json fuzz_run(int findings);

/// `document` with every text value that is not empty (not the keys, `kind` or `verdict`) followed by
/// `suffix`.
nlohmann::json with_hostile_texts(nlohmann::json document, const std::string& suffix);

}  // namespace assay::test
