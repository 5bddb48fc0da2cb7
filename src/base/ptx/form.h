// The form of an instruction, "ld.acquire.gpu.global.v4.f32" taken apart: which operation it is, and what its
// parts say of it. The parser fills it in, once for each instruction; nothing else looks at the text of an
// opcode. What an operation means stands in the machine's instruction table (src/base/vm/signature.h).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/ptx/type.h"

namespace assay::ptx {

/// Instructions by name (operations.def). `none`: PTX has no such instruction.
enum class Operation : uint8_t {
  none,
#define ASSAY_OPERATION(enumerator, name) enumerator,
#define ASSAY_SPELLING(enumerator, name)
#include "src/base/ptx/operations.def"
#undef ASSAY_SPELLING
#undef ASSAY_OPERATION
};
/// "ex2", "cp.async.wait_group".
std::string_view name_of(Operation);

/// To a float of fewer bits: rn to rp; to an integral value: rni to rpi.
enum class Rounding : uint8_t { none, rn, rna, rz, rm, rp, rni, rzi, rmi, rpi };
std::string_view name_of(Rounding);

enum class Comparison : uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};

std::string_view name_of(Comparison);

/// Which part of a product mul and mad keep.
enum class Product : uint8_t { none, lo, hi, wide };

/// What atom, red, redux and bar.red do with what is there; setp's combination with a predicate.
enum class Combine : uint8_t { none, add, min, max, and_, or_, xor_, exch, cas, inc, dec, popc };

enum class Order : uint8_t { none, weak, volatile_, relaxed, acquire, release, acq_rel, sc };

struct Form {
  Operation operation = Operation::none;
  Rounding rounding = Rounding::none;
  Comparison comparison = Comparison::none;
  Product product = Product::none;
  Combine combine = Combine::none;
  Order order = Order::none;
  Space space = Space::none;  ///< the first one written; none: generic addresses, or no memory at all
  uint8_t vector = 1;         ///< .v2, .v4, .v8; matrices of ldmatrix and stmatrix
  uint8_t type_count = 0;
  std::array<Type, 4> types{};  ///< in the order written: cvt and set name the result's first
  bool ftz : 1 = false;         ///< subnormal operands and results are zero
  bool saturates : 1 = false;   ///< .sat, .satfinite
  bool relu : 1 = false;
  bool approximate : 1 = false;  ///< .approx, .full
  bool nan : 1 = false;          ///< .NaN: min and max hand a NaN on
  bool carry_in : 1 = false, carry_out : 1 = false;
  bool sync : 1 = false;                            ///< names the lanes that take part
  bool transposed : 1 = false;                      ///< .trans
  bool packed : 1 = false;                          ///< a type with two or four values in a register
  bool float_pairs : 1 = false;                     ///< .f32x2, which is no type of a register
  bool in_cluster : 1 = false;                      ///< .shared::cluster: perhaps another block's
  bool cache_hint : 1 = false;                      ///< .L2::cache_hint: the last operand is a cache policy
  bool is_pack : 1 = false, is_unpack : 1 = false;  ///< mov from a vector, to a vector of registers

  /// What the instruction computes on: the last type named; none: it names none.
  Type type() const { return type_count ? types[type_count - 1u] : Type::none; }
};

/// Of a dotted opcode as written. Parts that say nothing that Form holds are passed over.
Form form_of(std::string_view opcode);

/// True for the first part of an opcode ("tcgen05" of "tcgen05.alloc...") that PTX ISA 9.0 lists.
bool is_instruction_name(std::string_view base);
/// "ld" of "ld.global.f32".
std::string_view base_of(std::string_view opcode);

/// The opcode without what changes no bits (cache operators, memory order and scope, .uni): as the
/// instruction table spells it.
std::string canonical_form(std::string_view opcode);

/// The same for all orders that an opcode's parts may be written in: of a canonical form, the name and what
/// ptxas takes behind it alone, the other parts sorted, then types and layouts as they follow each other.
std::string unordered_form(std::string_view canonical);

/// The opcode with `to` in place of its part `from`; `to` empty: without that part.
std::string with_part(std::string_view opcode, std::string_view from, std::string_view to);

}  // namespace assay::ptx
