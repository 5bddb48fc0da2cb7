// PTX with registers named by their distance: unrolled loops repeat themselves but for the numbers of their
// registers, and so lines that would differ are alike. Packs to about half of what the text itself does.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// "%f12" becomes "%f", a byte that says up or down, and the distance to the last register of that kind
/// that stood first on a line, this one too; lines that begin with a predicate have no first one. Nothing
/// where the text holds such bytes.
std::optional<std::string> with_relative_registers(std::string_view text);
/// The text again. Nothing where it cannot have come from there.
std::optional<std::string> with_absolute_registers(std::string_view text);

}  // namespace assay
