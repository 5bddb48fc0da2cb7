// Corrupts PTX text token by token, so that most results still parse and many run.
#pragma once
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace assay::ptx {

/// The text after `edits` edits drawn from `random`: registers, numbers, opcodes, types, labels and
/// predicates exchanged, address offsets changed, operands and lines deleted, doubled or swapped.
std::string mutate_tokens(std::string_view text, int edits, std::mt19937_64& random);

/// Opcodes of the instruction table (one of each pattern), directives, types and special registers.
const std::vector<std::string>& known_words();

}  // namespace assay::ptx
