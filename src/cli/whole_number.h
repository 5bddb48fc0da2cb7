// A check of an option's text: a whole number between two limits. CLI11's own ranges speak of doubles and let
// numbers that are too large saturate.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>

namespace assay::cli {

/// More threads than this are a slip of the pen.
constexpr uint64_t kMostThreads = 1024;

/// Refuses what is no whole number from `least` to `most`: "0 is not a whole number from 1 to 1024".
CLI::Validator whole_number(uint64_t least, uint64_t most);

/// The empty text, which CLI11 would read as the number 0 or as an option that was not given.
CLI::Validator not_empty();

}  // namespace assay::cli
