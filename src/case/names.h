// Messages about unknown names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// "unknown decay profile 'laddr': did you mean 'ladder'?" or, where nothing is near, the list of what there
/// is.
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

/// Of `known` what is nearest to `name`, whatever the case of its letters, by edits (insert, delete, replace,
/// swap of neighbours): at most a third of its letters, or two; of three letters and less one. Null: none is
/// so near.
const std::string* nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace assay
