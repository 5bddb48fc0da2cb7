// Messages about unknown names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// "unknown decay profile 'laddr': did you mean 'ladder'?" or, where nothing is near, the list of what there
/// is.
std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known);

}  // namespace assay
