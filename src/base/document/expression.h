// Expressions in sizes, as plans and launch files write them: "ceil_div(V, 64)", "(K + 2) * 2^-24".
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay {

/// What an expression may name.
struct ExpressionScope {
  std::map<std::string, double> variables;
  std::vector<int64_t>
      lengths;  ///< of each sequence, in tokens: what chunks(c) and the variable `longest` count
};

/// Value of `text`. Beside + - * / ^ and comparisons: a % b, ceil_div(a, b), floor_div(a, b), round_up(a, b),
/// next_power_of_two(a), min, max, and chunks(c): chunks of c tokens over all sequences, each counted from
/// its start. Throws BadInput("<where>: what") for a syntax error or a name the scope lacks, listing the
/// names there are.
double evaluate(const std::string& text, const ExpressionScope& scope, const std::string& where);

/// The same for a whole number in [low, high]; throws BadInput naming value and range otherwise.
int64_t evaluate_integer(const std::string& text, const ExpressionScope& scope, const std::string& where,
                         int64_t low, int64_t high);

}  // namespace assay
