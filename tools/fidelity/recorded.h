// The table that a run of tools/fidelity on a GPU left.
#pragma once
#include <map>
#include <string>

namespace assay::fidelity {

/// Form -> digest of its subset, in hex; what the assembler refused and what ran on all inputs has none.
std::map<std::string, std::string> recorded_digests(const std::string& path);

}  // namespace assay::fidelity
