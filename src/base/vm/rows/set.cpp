// set (PTX ISA 9.7.6): a comparison whose result is a value, all ones or 1.0 where it holds; packed halves
// give one result each.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

enum class Test { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

/// Ordered tests are false for NaN (also `ne`), the `u` ones true.
template <Test test, class V>
bool holds(V a, V b) {
  const bool ordered = a == a && b == b;
  if constexpr (test == Test::eq) return a == b;
  if constexpr (test == Test::ne) return ordered && a != b;
  if constexpr (test == Test::lt) return a < b;
  if constexpr (test == Test::le) return a <= b;
  if constexpr (test == Test::gt) return a > b;
  if constexpr (test == Test::ge) return a >= b;
  if constexpr (test == Test::equ) return !ordered || a == b;
  if constexpr (test == Test::neu) return !(a == b);
  if constexpr (test == Test::ltu) return !(a >= b);
  if constexpr (test == Test::leu) return !(a > b);
  if constexpr (test == Test::gtu) return !(a <= b);
  if constexpr (test == Test::geu) return !(a < b);
  if constexpr (test == Test::num) return ordered;
  return !ordered;
}

/// A lane's value as the host compares it.
template <class A, bool ftz>
auto value_of(typename A::value x) {
  if constexpr (A::type == Type::f32)
    return ftz ? flushed(x) : x;
  else if constexpr (A::type == Type::f16)
    return widened(Half{}, ftz && !(x & 0x7c00u) ? static_cast<uint16_t>(x & 0x8000u) : x);
  else if constexpr (A::type == Type::bf16)
    return widened(Brain{}, x);
  else
    return x;
}

template <Test test, bool ftz, class D, class A>
void add_one(std::vector<Row>& rows, std::initializer_list<const char*> form) {
  using V = typename A::value;
  binary<D, A, A>(rows, Flow::comparison, form, [](V a, V b) {
    using R = typename D::value;
    constexpr R yes = D::type == Type::f32    ? static_cast<R>(0x3f800000u)
                      : D::type == Type::f16  ? static_cast<R>(0x3c00u)
                      : D::type == Type::bf16 ? static_cast<R>(0x3f80u)
                                              : static_cast<R>(-1);
    return holds<test>(value_of<A, ftz>(a), value_of<A, ftz>(b)) ? yes : R{0};
  });
}

/// Both halves of packed operands: `yes` of each half is Yes.
template <Test test, bool ftz, class D, class Two, class One, uint32_t yes>
void add_packed(std::vector<Row>& rows, std::initializer_list<const char*> form) {
  binary<D, Two, Two>(rows, Flow::comparison, form, [](uint32_t a, uint32_t b) {
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 16)
      if (holds<test>(value_of<One, ftz>(static_cast<uint16_t>(a >> shift)),
                      value_of<One, ftz>(static_cast<uint16_t>(b >> shift))))
        result |= yes << shift;
    return result;
  });
}

template <Test test>
void add_halves(std::vector<Row>& rows, const char* name) {
  add_one<test, false, F16, F16>(rows, {"set.", name, ".f16.f16"});
  add_one<test, true, F16, F16>(rows, {"set.", name, ".ftz.f16.f16"});
  add_one<test, false, U16, F16>(rows, {"set.", name, ".{u16,s16}.f16"});
  add_one<test, false, U32, F16>(rows, {"set.", name, ".{u32,s32}.f16"});
  add_one<test, false, BF16, BF16>(rows, {"set.", name, ".bf16.bf16"});
  add_one<test, false, U16, BF16>(rows, {"set.", name, ".{u16,s16}.bf16"});
  add_one<test, false, U32, BF16>(rows, {"set.", name, ".{u32,s32}.bf16"});
  add_packed<test, false, F16x2, F16x2, F16, 0x3c00u>(rows, {"set.", name, ".f16x2.f16x2"});
  add_packed<test, true, F16x2, F16x2, F16, 0x3c00u>(rows, {"set.", name, ".ftz.f16x2.f16x2"});
  add_packed<test, false, U32, F16x2, F16, 0xffffu>(rows, {"set.", name, ".{u32,s32}.f16x2"});
  add_packed<test, true, U32, F16x2, F16, 0xffffu>(rows, {"set.", name, ".ftz.{u32,s32}.f16x2"});
  add_packed<test, false, BF16x2, BF16x2, BF16, 0x3f80u>(rows, {"set.", name, ".bf16x2.bf16x2"});
  add_packed<test, false, U32, BF16x2, BF16, 0xffffu>(rows, {"set.", name, ".{u32,s32}.bf16x2"});
}

template <Test test>
void add_float(std::vector<Row>& rows, const char* name) {
  add_one<test, false, U32, F32>(rows, {"set.", name, ".{u32,s32}.f32"});
  add_one<test, false, F32Bits, F32>(rows, {"set.", name, ".f32.f32"});
  add_one<test, true, U32, F32>(rows, {"set.", name, ".ftz.{u32,s32}.f32"});
  add_one<test, true, F32Bits, F32>(rows, {"set.", name, ".ftz.f32.f32"});
  add_one<test, false, U32, F64>(rows, {"set.", name, ".{u32,s32}.f64"});
  add_one<test, false, F32Bits, F64>(rows, {"set.", name, ".f32.f64"});
  add_halves<test>(rows, name);
}

template <Test test, class A>
void add_integer(std::vector<Row>& rows, const char* name, const char* type) {
  add_one<test, false, U32, A>(rows, {"set.", name, ".{u32,s32}", type});
  add_one<test, false, F32Bits, A>(rows, {"set.", name, ".f32", type});
}
template <Test test, bool is_signed_too>
void add_integers(std::vector<Row>& rows, const char* name, const char* unsigned_name) {
  add_integer<test, U16>(rows, unsigned_name, is_signed_too ? ".u16" : ".{b16,u16,s16}");
  add_integer<test, U32>(rows, unsigned_name, is_signed_too ? ".u32" : ".{b32,u32,s32}");
  add_integer<test, U64>(rows, unsigned_name, is_signed_too ? ".u64" : ".{b64,u64,s64}");
  if constexpr (is_signed_too) {
    add_integer<test, S16>(rows, name, ".s16");
    add_integer<test, S32>(rows, name, ".s32");
    add_integer<test, S64>(rows, name, ".s64");
  }
}

}  // namespace

void add_set_rows(std::vector<Row>& rows) {
  add_float<Test::eq>(rows, "eq");
  add_float<Test::ne>(rows, "ne");
  add_float<Test::lt>(rows, "lt");
  add_float<Test::le>(rows, "le");
  add_float<Test::gt>(rows, "gt");
  add_float<Test::ge>(rows, "ge");
  add_float<Test::equ>(rows, "equ");
  add_float<Test::neu>(rows, "neu");
  add_float<Test::ltu>(rows, "ltu");
  add_float<Test::leu>(rows, "leu");
  add_float<Test::gtu>(rows, "gtu");
  add_float<Test::geu>(rows, "geu");
  add_float<Test::num>(rows, "num");
  add_float<Test::nan>(rows, "nan");
  add_integers<Test::eq, false>(rows, "eq", "eq");
  add_integers<Test::ne, false>(rows, "ne", "ne");
  add_integers<Test::lt, true>(rows, "lt", "{lt,lo}");
  add_integers<Test::le, true>(rows, "le", "{le,ls}");
  add_integers<Test::gt, true>(rows, "gt", "{gt,hi}");
  add_integers<Test::ge, true>(rows, "ge", "{ge,hs}");
}

}  // namespace assay::vm::ASSAY_LANES
