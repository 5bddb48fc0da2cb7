// Integer arithmetic (PTX ISA 9.7.1 and 9.7.2): wraps around unless the form saturates.
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {
namespace {

template <class L>
const char* suffix() {
  switch (L::type) {
    case Type::u16:
      return ".u16";
    case Type::s16:
      return ".s16";
    case Type::u32:
      return ".u32";
    case Type::s32:
      return ".s32";
    case Type::u64:
      return ".u64";
    default:
      return ".s64";
  }
}

/// Unsigned type in which wrapping arithmetic of V is defined (16-bit operands would promote to signed int).
template <bool wide>
struct WrapOf {
  using type = uint32_t;
};
template <>
struct WrapOf<true> {
  using type = uint64_t;
};
template <class V>
using Wrap = typename WrapOf<sizeof(V) == 8>::type;

/// High half of the product of two values of V.
template <class V>
V high_product(V a, V b) {
  if constexpr (sizeof(V) == 8) {
    if constexpr (static_cast<V>(-1) < 0)
      return static_cast<V>((static_cast<__int128>(a) * b) >> 64);
    else
      return static_cast<V>((static_cast<unsigned __int128>(a) * b) >> 64);
  } else if constexpr (static_cast<V>(-1) < 0) {
    return static_cast<V>((static_cast<int64_t>(a) * b) >> (8 * sizeof(V)));
  } else {
    return static_cast<V>((static_cast<uint64_t>(a) * b) >> (8 * sizeof(V)));
  }
}

/// Division by zero gives all ones, and so does its remainder; MIN / -1 wraps: unspecified by PTX, as the
/// H200's expansions of division behave in every width.
template <class V>
V quotient(V a, V b) {
  if (b == 0) return static_cast<V>(-1);
  if (static_cast<V>(-1) < 0 && b == static_cast<V>(-1)) return static_cast<V>(0 - static_cast<uint64_t>(a));
  return static_cast<V>(a / b);
}
template <class V>
V remainder(V a, V b) {
  if (b == 0) return static_cast<V>(-1);
  if (static_cast<V>(-1) < 0 && b == static_cast<V>(-1)) return 0;
  return static_cast<V>(a % b);
}

template <class L>
void add_common(std::vector<Row>& rows) {
  using V = typename L::value;
  const char* type = suffix<L>();
  const Flow integer = Flow::integer;
  binary<L, L, L>(rows, integer, {"add", type}, [](V a, V b) {
    return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  });
  binary<L, L, L>(rows, integer, {"sub", type}, [](V a, V b) {
    return static_cast<V>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  });
  binary<L, L, L>(rows, integer, {"mul.lo", type}, [](V a, V b) {
    using W = Wrap<V>;
    return static_cast<V>(static_cast<W>(a) * static_cast<W>(b));
  });
  binary<L, L, L>(rows, integer, {"mul.hi", type}, [](V a, V b) { return high_product<V>(a, b); });
  ternary<L, L, L, L>(rows, integer, {"mad.lo", type}, [](V a, V b, V c) {
    using W = Wrap<V>;
    return static_cast<V>(static_cast<W>(a) * static_cast<W>(b) + static_cast<W>(c));
  });
  ternary<L, L, L, L>(rows, integer, {"mad.hi", type}, [](V a, V b, V c) {
    using W = Wrap<V>;
    return static_cast<V>(static_cast<W>(high_product<V>(a, b)) + static_cast<W>(c));
  });
  binary<L, L, L>(rows, integer, {"div", type}, [](V a, V b) { return quotient<V>(a, b); });
  binary<L, L, L>(rows, integer, {"rem", type}, [](V a, V b) { return remainder<V>(a, b); });
  binary<L, L, L>(rows, integer, {"min", type}, [](V a, V b) { return a < b ? a : b; });
  binary<L, L, L>(rows, integer, {"max", type}, [](V a, V b) { return a < b ? b : a; });
  ternary<L, L, L, L>(rows, integer, {"sad", type}, [](V a, V b, V c) {
    const uint64_t difference = a < b ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
                                      : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
    return static_cast<V>(static_cast<uint64_t>(c) + difference);
  });
}

template <class L>
void add_signed(std::vector<Row>& rows) {
  using V = typename L::value;
  using W = Wrap<V>;
  unary<L, L>(rows, Flow::integer, {"neg", suffix<L>()},
              [](V a) { return static_cast<V>(W{0} - static_cast<W>(a)); });
  unary<L, L>(rows, Flow::integer, {"abs", suffix<L>()},
              [](V a) { return a < 0 ? static_cast<V>(W{0} - static_cast<W>(a)) : a; });
}

template <class D, class L>
void add_widening(std::vector<Row>& rows) {
  using V = typename L::value;
  using W = typename D::value;
  binary<D, L, L>(rows, Flow::integer, {"mul.wide", suffix<L>()},
                  [](V a, V b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); });
  ternary<D, L, L, D>(rows, Flow::integer, {"mad.wide", suffix<L>()}, [](V a, V b, W c) {
    using U = Wrap<W>;
    return static_cast<W>(static_cast<U>(static_cast<W>(a) * static_cast<W>(b)) + static_cast<U>(c));
  });
}

int32_t saturated(int64_t x) {
  const int64_t low = x < INT32_MIN ? INT32_MIN : x;
  return static_cast<int32_t>(low > INT32_MAX ? INT32_MAX : low);
}

/// mul24: the 48 bits of the product of two numbers of 24 bits, which stand in the low ones of a register.
int64_t product24(int32_t a, int32_t b) {
  const auto low24 = [](int32_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8; };
  return int64_t{low24(a)} * low24(b);
}
uint64_t product24(uint32_t a, uint32_t b) {
  return uint64_t{a & 0xffffff} * (b & 0xffffff);
}

/// .lo: bits 0 to 31 of the product, .hi: bits 16 to 47.
template <class L, int from>
void add_24(std::vector<Row>& rows, const char* part) {
  using V = typename L::value;
  binary<L, L, L>(rows, Flow::integer, {"mul24", part, suffix<L>()},
                  [](V a, V b) { return static_cast<V>(product24(a, b) >> from); });
  ternary<L, L, L, L>(rows, Flow::integer, {"mad24", part, suffix<L>()}, [](V a, V b, V c) {
    return static_cast<V>(static_cast<uint32_t>(product24(a, b) >> from) + static_cast<uint32_t>(c));
  });
}

/// dp4a: four byte products added to c. A and B tell whether the bytes are signed.
template <class A, class B>
uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8)
    c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> i)) *
                               static_cast<int32_t>(static_cast<B>(b >> i)));
  return c;
}

}  // namespace

void add_integer_rows(std::vector<Row>& rows) {
  add_common<U16>(rows);
  add_common<S16>(rows);
  add_common<U32>(rows);
  add_common<S32>(rows);
  add_common<U64>(rows);
  add_common<S64>(rows);
  add_signed<S16>(rows);
  add_signed<S32>(rows);
  add_signed<S64>(rows);
  add_widening<U32, U16>(rows);
  add_widening<S32, S16>(rows);
  add_widening<U64, U32>(rows);
  add_widening<S64, S32>(rows);
  binary<S32, S32, S32>(rows, Flow::integer, {"add.sat.s32"},
                        [](int32_t a, int32_t b) { return saturated(int64_t{a} + b); });
  binary<S32, S32, S32>(rows, Flow::integer, {"sub.sat.s32"},
                        [](int32_t a, int32_t b) { return saturated(int64_t{a} - b); });
  add_24<U32, 0>(rows, ".lo");
  add_24<S32, 0>(rows, ".lo");
  add_24<U32, 16>(rows, ".hi");
  add_24<S32, 16>(rows, ".hi");
  ternary<S32, S32, S32, S32>(rows, Flow::integer, {"mad.hi.sat.s32"}, [](int32_t a, int32_t b, int32_t c) {
    return saturated(int64_t{high_product<int32_t>(a, b)} + c);
  });
  ternary<S32, S32, S32, S32>(rows, Flow::integer, {"mad24.hi.sat.s32"}, [](int32_t a, int32_t b, int32_t c) {
    return saturated(int64_t{static_cast<int32_t>(product24(a, b) >> 16)} + c);
  });
  ternary<U32, U32, U32, U32>(rows, Flow::integer, {"dp4a.u32.u32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return dot4<uint8_t, uint8_t>(a, b, c);
  });
  ternary<S32, S32, S32, S32>(rows, Flow::integer, {"dp4a.s32.s32"}, [](int32_t a, int32_t b, int32_t c) {
    return static_cast<int32_t>(
        dot4<int8_t, int8_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c)));
  });
}

}  // namespace assay::vm::ASSAY_LANES
