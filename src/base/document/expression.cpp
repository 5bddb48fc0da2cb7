#include "src/base/document/expression.h"

#include <fmt/format.h>
#include <muParser.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

double floor_div(double a, double b) {
  return std::floor(a / b);
}
double ceil_div(double a, double b) {
  return std::ceil(a / b);
}
double round_up(double a, double b) {
  return std::ceil(a / b) * b;
}
double remainder_of(double a, double b) {
  return a - std::floor(a / b) * b;
}

double next_power_of_two(double a) {
  double power = 1;
  while (power < a) power *= 2;
  return power;
}

double chunks(void* scope, double size) {
  double sum = 0;
  for (int64_t length : static_cast<const ExpressionScope*>(scope)->lengths)
    sum += ceil_div(static_cast<double>(length), size);
  return sum;
}

std::string names_of(const ExpressionScope& scope) {
  std::string names;
  for (const auto& [name, value] : scope.variables) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

double evaluate(const std::string& text, const ExpressionScope& scope, const std::string& where) {
  try {
    mu::Parser parser;
    for (const auto& [name, value] : scope.variables) parser.DefineConst(name, value);
    parser.DefineFun("floor_div", floor_div);
    parser.DefineFun("ceil_div", ceil_div);
    parser.DefineFun("round_up", round_up);
    parser.DefineFun("next_power_of_two", next_power_of_two);
    parser.DefineFunUserData("chunks", chunks, const_cast<ExpressionScope*>(&scope));
    parser.DefineOprt("%", remainder_of, mu::prMUL_DIV);
    parser.SetExpr(text);
    int results = 0;
    const double* values = parser.Eval(results);
    if (results != 1) throw BadInput(fmt::format("{}: \"{}\" is a list; write one expression", where, text));
    return values[0];
  } catch (const mu::ParserError& error) {
    throw BadInput(fmt::format("{}: \"{}\" cannot be evaluated: {} Names known here: {}", where, text,
                               error.GetMsg(), names_of(scope)));
  }
}

int64_t evaluate_integer(const std::string& text, const ExpressionScope& scope, const std::string& where,
                         int64_t low, int64_t high) {
  const double value = evaluate(text, scope, where);
  // Written so that NaN fails. Doubles hold every integer up to 2^53.
  if (!(value == std::floor(value) && value >= static_cast<double>(low) &&
        value <= static_cast<double>(high)))
    throw BadInput(
        fmt::format("{}: \"{}\" = {} is not a whole number from {} to {}", where, text, value, low, high));
  return static_cast<int64_t>(value);
}

}  // namespace assay
