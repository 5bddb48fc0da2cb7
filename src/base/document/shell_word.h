// A word of a command line as a shell takes it.
#pragma once
#include <string>

namespace assay {

/// In quotes where it is empty, or has blanks or other characters that a shell reads.
std::string shell_word(const std::string& text);

}  // namespace assay
