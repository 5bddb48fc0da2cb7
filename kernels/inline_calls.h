// PTX with every call replaced by the function's body, lines of the source with where they were called from.
#pragma once
#include <string>
#include <string_view>

namespace assay {

/// Of what nvcc -G writes: each entry with the bodies of all functions of the module that it calls, what only
/// debuggers read left out. Functions that the module does not define are called as before.
std::string inline_calls(std::string_view ptx);

}  // namespace assay
