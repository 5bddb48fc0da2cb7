// setp and testp (PTX ISA 9.7.6, 9.7.3). The combination with a predicate (.and, .or, .xor) is the engine's.
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/rounding.h"

namespace assay::vm::ASSAY_LANES {
namespace {

template <class F, class A>
uint32_t compare_lanes(const void* a, const void* b) {
  uint32_t mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<uint32_t>(F{}(A::get(a, i), A::get(b, i)) ? 1u : 0u) << i;
  return mask;
}
template <class F, class A>
uint32_t test_lanes(const void* a, const void*) {
  uint32_t mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<uint32_t>(F{}(A::get(a, i)) ? 1u : 0u) << i;
  return mask;
}

template <class A, class F>
void compare(std::vector<Row>& rows, const char* comparison, const char* ftz, const char* type, F) {
  add_lane_row(rows,
               {.kind = Kind::compare,
                .flow = Flow::comparison,
                .result = Type::pred,
                .sources = {A::type, A::type},
                .mask = compare_lanes<F, A>},
               {"setp.", comparison, "{,.and,.or,.xor}", ftz, type});
}
template <class A, class F>
void test(std::vector<Row>& rows, const char* property, const char* type, F) {
  add_lane_row(rows,
               {.kind = Kind::compare,
                .flow = Flow::comparison,
                .result = Type::pred,
                .sources = {A::type},
                .mask = test_lanes<F, A>},
               {"testp.", property, type});
}

template <class A>
void add_equality(std::vector<Row>& rows, const char* type) {
  using V = typename A::value;
  compare<A>(rows, "eq", "", type, [](V a, V b) { return a == b; });
  compare<A>(rows, "ne", "", type, [](V a, V b) { return a != b; });
}
template <class A>
void add_order(std::vector<Row>& rows, const char* type) {
  using V = typename A::value;
  compare<A>(rows, "{lt,lo}", "", type, [](V a, V b) { return a < b; });
  compare<A>(rows, "{le,ls}", "", type, [](V a, V b) { return a <= b; });
  compare<A>(rows, "{gt,hi}", "", type, [](V a, V b) { return a > b; });
  compare<A>(rows, "{ge,hs}", "", type, [](V a, V b) { return a >= b; });
}

/// Reads a lane as a host float or double.
template <class A, bool ftz>
struct Value {
  static auto of(typename A::value x) {
    if constexpr (A::type == Type::f32)
      return ftz ? flushed(x) : x;
    else if constexpr (A::type == Type::f64)
      return x;
    else if constexpr (A::type == Type::f16)
      return widened(Half{}, ftz && !(x & 0x7c00u) ? static_cast<uint16_t>(x & 0x8000u) : x);
    else
      return widened(Brain{}, x);
  }
};

/// Ordered comparisons are false for NaN (also `ne`), the `u` ones true.
template <class A, bool ftz>
void add_float(std::vector<Row>& rows, const char* modifier, const char* type) {
  using V = typename A::value;
  using R = Value<A, ftz>;
  compare<A>(rows, "eq", modifier, type, [](V a, V b) { return R::of(a) == R::of(b); });
  compare<A>(rows, "ne", modifier, type, [](V a, V b) { return R::of(a) < R::of(b) || R::of(a) > R::of(b); });
  compare<A>(rows, "lt", modifier, type, [](V a, V b) { return R::of(a) < R::of(b); });
  compare<A>(rows, "le", modifier, type, [](V a, V b) { return R::of(a) <= R::of(b); });
  compare<A>(rows, "gt", modifier, type, [](V a, V b) { return R::of(a) > R::of(b); });
  compare<A>(rows, "ge", modifier, type, [](V a, V b) { return R::of(a) >= R::of(b); });
  compare<A>(rows, "equ", modifier, type,
             [](V a, V b) { return !(R::of(a) < R::of(b) || R::of(a) > R::of(b)); });
  compare<A>(rows, "neu", modifier, type, [](V a, V b) { return R::of(a) != R::of(b); });
  compare<A>(rows, "ltu", modifier, type, [](V a, V b) { return !(R::of(a) >= R::of(b)); });
  compare<A>(rows, "leu", modifier, type, [](V a, V b) { return !(R::of(a) > R::of(b)); });
  compare<A>(rows, "gtu", modifier, type, [](V a, V b) { return !(R::of(a) <= R::of(b)); });
  compare<A>(rows, "geu", modifier, type, [](V a, V b) { return !(R::of(a) < R::of(b)); });
  compare<A>(rows, "num", modifier, type,
             [](V a, V b) { return R::of(a) == R::of(a) && R::of(b) == R::of(b); });
  compare<A>(rows, "nan", modifier, type,
             [](V a, V b) { return R::of(a) != R::of(a) || R::of(b) != R::of(b); });
}

template <class A>
void add_tests(std::vector<Row>& rows, const char* type) {
  using V = typename A::value;
  constexpr V sign = V{1} << (8 * sizeof(V) - 1);
  constexpr V infinity = sizeof(V) == 4 ? static_cast<V>(0x7f800000u) : static_cast<V>(0x7ff0000000000000ull);
  constexpr V least = sizeof(V) == 4 ? static_cast<V>(0x00800000u) : static_cast<V>(0x0010000000000000ull);
  test<A>(rows, "finite", type, [](V a) { return (a & ~sign) < infinity; });
  test<A>(rows, "infinite", type, [](V a) { return (a & ~sign) == infinity; });
  test<A>(rows, "number", type, [](V a) { return (a & ~sign) <= infinity; });
  test<A>(rows, "notanumber", type, [](V a) { return (a & ~sign) > infinity; });
  // The hardware counts zeros as normal.
  test<A>(rows, "normal", type,
          [](V a) { return ((a & ~sign) >= least && (a & ~sign) < infinity) || (a & ~sign) == 0; });
  test<A>(rows, "subnormal", type, [](V a) { return (a & ~sign) < least && (a & ~sign) != 0; });
}

}  // namespace

void add_compare_rows(std::vector<Row>& rows) {
  add_equality<U16>(rows, ".{b16,u16,s16}");
  add_equality<U32>(rows, ".{b32,u32,s32}");
  add_equality<U64>(rows, ".{b64,u64,s64}");
  add_order<U16>(rows, ".u16");
  add_order<S16>(rows, ".s16");
  add_order<U32>(rows, ".u32");
  add_order<S32>(rows, ".s32");
  add_order<U64>(rows, ".u64");
  add_order<S64>(rows, ".s64");
  add_float<F32, false>(rows, "", ".f32");
  add_float<F32, true>(rows, ".ftz", ".f32");
  add_float<F64, false>(rows, "", ".f64");
  add_float<F16, false>(rows, "", ".f16");
  add_float<F16, true>(rows, ".ftz", ".f16");
  add_float<BF16, false>(rows, "", ".bf16");
  add_tests<F32Bits>(rows, ".f32");
  add_tests<Lane<uint64_t, uint64_t, Type::f64>>(rows, ".f64");
}

}  // namespace assay::vm::ASSAY_LANES
