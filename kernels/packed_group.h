// Texts of modules as packages carry them: those of one source packed together, since its formats differ
// little, and by distances between registers (relative_registers.h); a zstd frame of a line "NAME BYTES" for
// each, an empty line, and the texts, each behind a letter: r by distances, a as it is. All of ours take a
// sixth of what they take each alone.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

/// Names hold neither a space nor a line's end.
std::string packed_group(const std::vector<std::pair<std::string, std::string>>& named_texts);
/// Nothing where these are not the bytes of a group, or it has no text of that name.
std::optional<std::string> text_of_group(std::string_view bytes, std::string_view name);

}  // namespace assay
