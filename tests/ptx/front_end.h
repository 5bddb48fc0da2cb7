// What a text goes through before anything runs: parse, spell out the roundings, decode every entry. The same
// for libFuzzer (parser_fuzzer.cpp) and for the replay of its corpus.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::ptx {

/// Something that no text may cause; the message says what.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

/// "": the text is accepted whole; else what was said of it, a line per entry that is refused. Throws Broken
/// where the rewritten text means something else, or where a message has no position.
std::string front_end(std::string_view text);

}  // namespace assay::ptx
