// A result as a comment on a pull request: short, details folded, a replay line for each finding.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// Markdown of at most kCommentBytes: what does not fit is counted, never cut silently. Throws BadInput where
/// the document is no result.
std::string render_pull_request(const nlohmann::json& result);

/// Code hosts take comments of up to 65536 characters.
inline constexpr size_t kCommentBytes = 60'000;

}  // namespace assay
