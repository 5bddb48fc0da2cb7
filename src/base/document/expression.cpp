#include "src/base/document/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

double ceil_div(double a, double b) {
  return std::ceil(a / b);
}
double next_power_of_two(double a) {
  double power = 1;
  while (power < a) power *= 2;
  return power;
}

using Values = std::vector<double>;

double sum_of(const Values& x) {
  double sum = 0;
  for (const double each : x) sum += each;
  return sum;
}

double chunks(const ExpressionScope& scope, double size) {
  double sum = 0;
  for (const int64_t length : scope.lengths) sum += ceil_div(static_cast<double>(length), size);
  return sum;
}

struct Function {
  std::string_view name;
  size_t arguments;  ///< 0: one or more
  double (*value)(const ExpressionScope&, const Values&);
};
#define ASSAY_OF(formula) [](const ExpressionScope&, const Values& x) -> double { return formula; }
constexpr Function kFunctions[] = {
    {"floor_div", 2, ASSAY_OF(std::floor(x[0] / x[1]))},
    {"ceil_div", 2, ASSAY_OF(ceil_div(x[0], x[1]))},
    {"round_up", 2, ASSAY_OF(ceil_div(x[0], x[1]) * x[1])},
    {"next_power_of_two", 1, ASSAY_OF(next_power_of_two(x[0]))},
    {"chunks", 1, [](const ExpressionScope& scope, const Values& x) { return chunks(scope, x[0]); }},
    {"min", 0, ASSAY_OF(*std::min_element(x.begin(), x.end()))},
    {"max", 0, ASSAY_OF(*std::max_element(x.begin(), x.end()))},
    {"sum", 0, ASSAY_OF(sum_of(x))},
    {"avg", 0, ASSAY_OF(sum_of(x) / static_cast<double>(x.size()))},
    {"abs", 1, ASSAY_OF(std::fabs(x[0]))},
    {"sign", 1, ASSAY_OF(static_cast<double>((x[0] > 0) - (x[0] < 0)))},
    {"rint", 1, ASSAY_OF(std::floor(x[0] + 0.5))},
    {"sqrt", 1, ASSAY_OF(std::sqrt(x[0]))},
    {"exp", 1, ASSAY_OF(std::exp(x[0]))},
    {"ln", 1, ASSAY_OF(std::log(x[0]))},
    {"log2", 1, ASSAY_OF(std::log2(x[0]))},
    {"log10", 1, ASSAY_OF(std::log10(x[0]))},
};
#undef ASSAY_OF

/// Binary operators, those of a level from left to right; a sign binds closer than all of them, a power
/// closer than a sign.
struct Binary {
  int level;
  std::string_view sign;
  double (*value)(double, double);
};
#define ASSAY_OF(formula) [](double a, double b) -> double { return formula; }
constexpr Binary kBinary[] = {
    {0, "||", ASSAY_OF(a != 0 || b != 0)},
    {1, "&&", ASSAY_OF(a != 0 && b != 0)},
    {2, "==", ASSAY_OF(a == b)},
    {2, "!=", ASSAY_OF(a != b)},
    {2, "<=", ASSAY_OF(a <= b)},
    {2, ">=", ASSAY_OF(a >= b)},
    {2, "<", ASSAY_OF(a < b)},
    {2, ">", ASSAY_OF(a > b)},
    {3, "+", ASSAY_OF(a + b)},
    {3, "-", ASSAY_OF(a - b)},
    {4, "*", ASSAY_OF(a* b)},
    {4, "/", ASSAY_OF(a / b)},
    {4, "%", ASSAY_OF(a - std::floor(a / b) * b)},
};
#undef ASSAY_OF
constexpr int kHighest = 4, kDeepest = 200;

/// What is wrong with an expression, in words; a sentence.
struct Fault {
  std::string text;
};

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Reader {
 public:
  Reader(std::string_view text, const ExpressionScope& scope) : text_(text), scope_(scope) {}

  double whole() {
    const double value = choice();
    if (at_ < text_.size() && text_[at_] == ',') throw Fault{"It is a list; write one expression."};
    if (at_ < text_.size()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    if (at_ >= text_.size()) throw Fault{"It ends too early."};
    throw Fault{fmt::format("Unexpected '{}' at position {}.", text_[at_], at_)};
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view sign) {
    if (text_.substr(at_, sign.size()) != sign) return false;
    at_ += sign.size();
    skip_blanks();
    return true;
  }
  void require(std::string_view sign) {
    if (!take(sign)) fail();
  }

  double choice() {
    if (++depth_ > kDeepest) throw Fault{"It is nested too deep."};
    skip_blanks();
    double value = binary(0);
    if (take("?")) {
      const double yes = choice();
      require(":");
      const double no = choice();
      value = value != 0 ? yes : no;
    }
    --depth_;
    return value;
  }

  double binary(int level) {
    if (level > kHighest) return signed_one();
    double value = binary(level + 1);
    for (;;) {
      const auto* const row = std::find_if(std::begin(kBinary), std::end(kBinary),
                                           [&](const Binary& b) { return b.level == level && take(b.sign); });
      if (row == std::end(kBinary)) return value;
      value = row->value(value, binary(level + 1));
    }
  }

  double signed_one() {
    if (++depth_ > kDeepest) throw Fault{"It is nested too deep."};
    const double value = take("-")   ? -signed_one()
                         : take("+") ? signed_one()
                         : take("!") ? static_cast<double>(signed_one() == 0)
                                     : power();
    --depth_;
    return value;
  }

  double power() {
    const double base = operand();
    return take("^") ? std::pow(base, signed_one()) : base;
  }

  double operand() {
    if (take("(")) {
      const double value = choice();
      require(")");
      return value;
    }
    const char* const from = text_.data() + at_;
    double value = 0;
    const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] >= '0' && text_[at_] <= '9')) &&
        error == std::errc()) {
      at_ += static_cast<size_t>(end - from);
      skip_blanks();
      return value;
    }
    return named();
  }

  double named() {
    size_t end = at_;
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    const std::string name(text_.substr(at_, end - at_));
    if (name.empty()) fail();
    const size_t place = at_;
    at_ = end;
    skip_blanks();
    if (!take("(")) {
      const auto found = scope_.variables.find(name);
      if (found == scope_.variables.end())
        throw Fault{fmt::format("Nothing is called \"{}\" (position {}).", name, place)};
      return found->second;
    }
    const auto* const function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                              [&](const Function& f) { return f.name == name; });
    if (function == std::end(kFunctions))
      throw Fault{fmt::format("There is no function \"{}\" (position {}).", name, place)};
    Values values{choice()};
    while (take(",")) values.push_back(choice());
    require(")");
    if (function->arguments != 0 && function->arguments != values.size())
      throw Fault{fmt::format("\"{}\" takes {} argument{}, not {}.", name, function->arguments,
                              function->arguments == 1 ? "" : "s", values.size())};
    return function->value(scope_, values);
  }

  std::string_view text_;
  const ExpressionScope& scope_;
  size_t at_ = 0;
  int depth_ = 0;
};

std::string names_of(const ExpressionScope& scope) {
  std::string names;
  for (const auto& [name, value] : scope.variables) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

double evaluate(const std::string& text, const ExpressionScope& scope, const std::string& where) {
  try {
    return Reader(text, scope).whole();
  } catch (const Fault& fault) {
    throw BadInput(fmt::format("{}: \"{}\" cannot be evaluated: {} Names known here: {}", where, text,
                               fault.text, names_of(scope)));
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
