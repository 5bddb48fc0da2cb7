// What a kernel declares of its arithmetic: enough to derive the a-priori bound. One struct per family of
// operators, made from the rows of arithmetic.def. Derivations stand where the numbers are made (the kernel's
// plan).
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

namespace assay {

/// What a declared number is.
enum class ArithmeticUnit {
  relative,  ///< relative error
  per_nat,   ///< relative error per unit of a logarithm
  absolute,  ///< absolute error
  tokens,    ///< no error: a number of tokens
  roundoff,  ///< u of a format, of the one rounding that even an exact kernel has
};
std::string_view name_of(ArithmeticUnit);

/// A count is whole, an error is not.
template <ArithmeticUnit unit>
using ArithmeticNumber = std::conditional_t<unit == ArithmeticUnit::tokens, int64_t, double>;

#define ASSAY_NUMBER(name, unit, covers) ArithmeticNumber<ArithmeticUnit::unit> name = 0;

/// S_t = decay S_{t-1} + k_t v_t^T and its readout: the part that every family has.
struct RecurrenceArithmetic {
#define RECURRENCE ASSAY_NUMBER
#include "reference/arithmetic.def"
};
struct BonusArithmetic {
#define BONUS ASSAY_NUMBER
#include "reference/arithmetic.def"
};
struct QuotientArithmetic {
#define QUOTIENT ASSAY_NUMBER
#include "reference/arithmetic.def"
};
struct SlotArithmetic {
#define SLOTS ASSAY_NUMBER
#include "reference/arithmetic.def"
};
struct RemovalArithmetic {
#define REMOVAL ASSAY_NUMBER
#include "reference/arithmetic.def"
};

/// What any kernel may declare of its forward entry points: numbers of families that are not its own stay 0.
struct Arithmetic : RecurrenceArithmetic,
                    BonusArithmetic,
                    QuotientArithmetic,
                    SlotArithmetic,
                    RemovalArithmetic {};

/// What a kernel declares of its gradients. S and G = dL/dS are made by mirrored recurrences, each declared
/// as a forward state is.
struct AdjointArithmetic {
  Arithmetic state;    ///< of S_t; `readout` is that of dq, `output_roundoff` that of dq, dk and dv
  Arithmetic adjoint;  ///< of G_t, time reversed; `readout` is that of dk
#define ADJOINT ASSAY_NUMBER
#include "reference/arithmetic.def"
};
#undef ASSAY_NUMBER

/// A row of arithmetic.def, with the number it names in a struct of all families.
template <typename Declared>
struct ArithmeticField {
  std::string_view family, name, covers;
  ArithmeticUnit unit;
  std::variant<double Declared::*, int64_t Declared::*> member;

  /// The number as an error of an operation: 0 where it is none.
  double error(const Declared& a) const {
    if (unit == ArithmeticUnit::tokens || unit == ArithmeticUnit::roundoff) return 0;
    return a.*std::get<double Declared::*>(member);
  }
};

inline constexpr ArithmeticField<Arithmetic> kArithmeticFields[] = {
#define ASSAY_ARITHMETIC_FIELD(family, name, unit, covers) \
  {family, #name, covers, ArithmeticUnit::unit, &Arithmetic::name},
#define RECURRENCE(...) ASSAY_ARITHMETIC_FIELD("recurrence", __VA_ARGS__)
#define BONUS(...) ASSAY_ARITHMETIC_FIELD("bonus", __VA_ARGS__)
#define QUOTIENT(...) ASSAY_ARITHMETIC_FIELD("quotient", __VA_ARGS__)
#define SLOTS(...) ASSAY_ARITHMETIC_FIELD("slots", __VA_ARGS__)
#define REMOVAL(...) ASSAY_ARITHMETIC_FIELD("removal", __VA_ARGS__)
#include "reference/arithmetic.def"
#undef ASSAY_ARITHMETIC_FIELD
};

inline constexpr ArithmeticField<AdjointArithmetic> kAdjointFields[] = {
#define ADJOINT(name, unit, covers) \
  {"adjoint", #name, covers, ArithmeticUnit::unit, &AdjointArithmetic::name},
#include "reference/arithmetic.def"
};

/// True where every error is zero: the kernel claims to be exact.
bool claims_exact(const Arithmetic&);
bool claims_exact(const AdjointArithmetic&);

}  // namespace assay
