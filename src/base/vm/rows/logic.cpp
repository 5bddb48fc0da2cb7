// Logic, shifts, bit fields, selection and moves (PTX ISA 9.7.1, 9.7.8, 9.7.9).
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {
namespace {

/// Predicates as whole lane masks.
template <class F>
void mask_unary(void* d, const void* a, const void*, const void*, const void*) {
  *static_cast<uint32_t*>(d) = F{}(*static_cast<const uint32_t*>(a));
}
template <class F>
void mask_binary(void* d, const void* a, const void* b, const void*, const void*) {
  *static_cast<uint32_t*>(d) = F{}(*static_cast<const uint32_t*>(a), *static_cast<const uint32_t*>(b));
}
template <class F>
void predicate_unary(std::vector<Row>& rows, Flow flow, const char* form, F) {
  add_lane_row(rows, {.flow = flow, .result = Type::pred, .sources = {Type::pred}, .lanes = mask_unary<F>},
               {form});
}
template <class F>
void predicate_binary(std::vector<Row>& rows, const char* form, F) {
  add_lane_row(rows,
               {.flow = Flow::logic,
                .result = Type::pred,
                .sources = {Type::pred, Type::pred},
                .lanes = mask_binary<F>},
               {form});
}

template <class L>
void add_logic(std::vector<Row>& rows, const char* type) {
  using V = typename L::value;
  const Flow logic = Flow::logic;
  binary<L, L, L>(rows, logic, {"and.b", type}, [](V a, V b) { return static_cast<V>(a & b); });
  binary<L, L, L>(rows, logic, {"or.b", type}, [](V a, V b) { return static_cast<V>(a | b); });
  binary<L, L, L>(rows, logic, {"xor.b", type}, [](V a, V b) { return static_cast<V>(a ^ b); });
  unary<L, L>(rows, logic, {"not.b", type}, [](V a) { return static_cast<V>(~a); });
  unary<L, L>(rows, Flow::integer, {"cnot.b", type}, [](V a) { return static_cast<V>(a == 0); });
}

/// Shift amounts are clamped at the width.
template <class U, class S>
void add_shifts(std::vector<Row>& rows, const char* width) {
  using V = typename U::value;
  using W = typename S::value;
  constexpr uint32_t n = 8 * sizeof(V);
  binary<U, U, U32>(rows, Flow::shift, {"shl.b", width}, [](V a, uint32_t b) {
    return b >= n ? V{0} : static_cast<V>(static_cast<uint64_t>(a) << (b & 63));
  });
  binary<U, U, U32>(rows, Flow::shift, {"shr.{b,u}", width},
                    [](V a, uint32_t b) { return b >= n ? V{0} : static_cast<V>(a >> (b & (n - 1))); });
  binary<S, S, U32>(rows, Flow::shift, {"shr.s", width},
                    [](W a, uint32_t b) { return static_cast<W>(a >> (b >= n ? n - 1 : b)); });
}

/// bfe: `length` bits from `position`; signed forms extend the top bit of the field, or the sign of `a` where
/// the field reaches beyond it. 32-bit forms take both from the low 8 bits of their operands; 64-bit forms,
/// which the assembler makes of shifts, take all 32 bits (seen on an H200).
template <class V>
uint32_t field_operand(uint32_t x) {
  return sizeof(V) == 4 ? x & 0xff : x;
}

/// The lowest `length` bits set.
template <class V>
V low_bits(uint32_t length) {
  return length >= 8 * sizeof(V) ? static_cast<V>(-1) : static_cast<V>((V{1} << length) - 1);
}

template <class V, bool is_signed>
V field(V a, uint32_t position, uint32_t length) {
  constexpr uint32_t n = 8 * sizeof(V);
  position = field_operand<V>(position);
  length = field_operand<V>(length);
  if (length == 0) return 0;
  const V fill = is_signed && (a >> (n - 1)) ? static_cast<V>(-1) : V{0};
  const V shifted = position >= n   ? fill
                    : position == 0 ? a
                                    : static_cast<V>((a >> position) | (fill << (n - position)));
  const V ones = low_bits<V>(length);
  const bool extend = is_signed && length <= n && ((shifted >> (length - 1)) & 1);
  return static_cast<V>((shifted & ones) | (extend ? static_cast<V>(~ones) : V{0}));
}

template <class V>
V inserted(V a, V b, uint32_t position, uint32_t length) {
  constexpr uint32_t n = 8 * sizeof(V);
  position = field_operand<V>(position);
  length = field_operand<V>(length);
  if (position >= n || length == 0) return b;
  const V at = static_cast<V>(low_bits<V>(length) << position);
  return static_cast<V>((b & ~at) | ((a << position) & at));
}

/// prmt in a mode: the byte of {b, a} that becomes byte i of the result, by the low two bits of the selector.
enum class Extract { forward, backward, replicate, left, right, halves };
template <Extract mode>
int byte_of(int selected, int i) {
  switch (mode) {
    case Extract::forward:  // four bytes from the selected one on
      return selected + i;
    case Extract::backward:  // the same downwards, round the eight
      return (selected - i) & 7;
    case Extract::replicate:
      return selected;
    case Extract::left:  // none below the selected one
      return i < selected ? selected : i;
    case Extract::right:  // none above it
      return i < selected ? i : selected;
    case Extract::halves:
      return 2 * (selected & 1) + (i & 1);
  }
}

template <Extract mode>
void add_extract(std::vector<Row>& rows, const char* form) {
  ternary<B32, B32, B32, B32>(
      rows, Flow::permute, {"prmt.b32.", form}, [](uint32_t a, uint32_t b, uint32_t c) {
        const uint64_t bytes = (static_cast<uint64_t>(b) << 32) | a;
        uint32_t result = 0;
        for (int i = 0; i < 4; ++i)
          result |= static_cast<uint32_t>(bytes >> (8 * byte_of<mode>(static_cast<int>(c & 3), i)) & 0xff)
                    << (8 * i);
        return result;
      });
}

/// fns: where the |offset|-th set bit stands from `base` on, upwards, or downwards where offset < 0; offset
/// 0: base, if its bit is set. All ones: nowhere.
uint32_t nth_set(uint32_t bits, uint32_t base, int32_t offset) {
  if (offset == 0) return base < 32 && (bits >> base & 1) ? base : ~0u;
  int64_t left = offset < 0 ? -int64_t{offset} : offset;
  const int64_t step = offset < 0 ? -1 : 1;
  for (int64_t at = base; at >= 0 && at < 32; at += step)
    if ((bits >> at & 1) && --left == 0) return static_cast<uint32_t>(at);
  return ~0u;
}

/// szext: the low `length` bits, and above them zeros, or their highest bit.
template <bool clamp, bool is_signed>
uint32_t extended(uint32_t a, uint32_t length) {
  if (clamp && length >= 32) return a;
  length &= 31;
  if (length == 0) return 0;
  const uint32_t above = ~0u << length;
  return is_signed && (a >> (length - 1) & 1) ? a | above : a & ~above;
}

/// prmt in its default mode: each selector nibble picks a byte of {b, a}, or its sign replicated.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = (static_cast<uint64_t>(b) << 32) | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibble = (selector >> (4 * i)) & 15;
    const auto byte = static_cast<uint32_t>(bytes >> (8 * (nibble & 7))) & 0xff;
    const uint32_t value = nibble & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte;
    result |= value << (8 * i);
  }
  return result;
}

uint32_t three_way_logic(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (int i = 0; i < 8; ++i) {
    const uint32_t minterm = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    result |= (table >> i) & 1 ? minterm : 0;
  }
  return result;
}

/// bmsk: `length` ones from `position` on; beyond the word they wrap round, or are cut off.
template <bool clamp>
uint32_t bit_mask(uint32_t position, uint32_t length) {
  if (clamp && position >= 32) return 0;
  const uint32_t first = position & 31, width = length & 31, end = first + width;
  const uint32_t below_end = end >= 32 || (clamp && length >= 32) ? ~0u : (1u << end) - 1;
  return below_end & ~0u << first;
}

/// bfind: position of the highest bit that differs from the sign, all ones if there is none.
template <class V>
uint32_t highest_bit(V a) {
  if constexpr (sizeof(V) == 8)
    return a == 0 ? ~0u : 63u - static_cast<uint32_t>(__builtin_clzll(a));
  else
    return a == 0 ? ~0u : 31u - static_cast<uint32_t>(__builtin_clz(a));
}

template <class L>
void add_select(std::vector<Row>& rows, const char* forms) {
  using V = typename L::value;
  ternary<L, L, L, Pred>(rows, Flow::select, {"selp.", forms}, [](V a, V b, bool p) { return p ? a : b; });
}

template <class L>
void add_move(std::vector<Row>& rows, const char* forms) {
  unary<L, L>(rows, Flow::copy, {"mov.", forms}, [](typename L::value a) { return a; });
}

void add_funnel_shifts(std::vector<Row>& rows) {
  const Flow permute = Flow::permute;
  ternary<B32, B32, B32, U32>(rows, permute, {"shf.l.wrap.b32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((((static_cast<uint64_t>(b) << 32) | a) << (c & 31)) >> 32);
  });
  ternary<B32, B32, B32, U32>(rows, permute, {"shf.l.clamp.b32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((((static_cast<uint64_t>(b) << 32) | a) << (c < 32 ? c : 32)) >> 32);
  });
  ternary<B32, B32, B32, U32>(rows, permute, {"shf.r.wrap.b32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(((static_cast<uint64_t>(b) << 32) | a) >> (c & 31));
  });
  ternary<B32, B32, B32, U32>(rows, permute, {"shf.r.clamp.b32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(((static_cast<uint64_t>(b) << 32) | a) >> (c < 32 ? c : 32));
  });
}

void add_bit_fields(std::vector<Row>& rows) {
  const Flow permute = Flow::permute, integer = Flow::integer;
  ternary<U32, U32, U32, U32>(rows, permute, {"bfe.u32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return field<uint32_t, false>(a, b, c);
  });
  ternary<S32, U32, U32, U32>(rows, permute, {"bfe.s32"}, [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<int32_t>(field<uint32_t, true>(a, b, c));
  });
  ternary<U64, U64, U32, U32>(rows, permute, {"bfe.u64"}, [](uint64_t a, uint32_t b, uint32_t c) {
    return field<uint64_t, false>(a, b, c);
  });
  ternary<S64, U64, U32, U32>(rows, permute, {"bfe.s64"}, [](uint64_t a, uint32_t b, uint32_t c) {
    return static_cast<int64_t>(field<uint64_t, true>(a, b, c));
  });
  quaternary<B32, B32, B32, U32, U32>(
      rows, permute, {"bfi.b32"},
      [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return inserted<uint32_t>(a, b, c, d); });
  quaternary<B64, B64, B64, U32, U32>(
      rows, permute, {"bfi.b64"},
      [](uint64_t a, uint64_t b, uint32_t c, uint32_t d) { return inserted<uint64_t>(a, b, c, d); });
  ternary<B32, B32, B32, B32>(rows, permute, {"prmt.b32"},
                              [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); });
  quaternary<B32, B32, B32, B32, U32>(
      rows, Flow::logic, {"lop3.b32"},
      [](uint32_t a, uint32_t b, uint32_t c, uint32_t t) { return three_way_logic(a, b, c, t); });
  binary<B32, U32, U32>(rows, integer, {"bmsk.clamp.b32"},
                        [](uint32_t a, uint32_t b) { return bit_mask<true>(a, b); });
  binary<B32, U32, U32>(rows, integer, {"bmsk.wrap.b32"},
                        [](uint32_t a, uint32_t b) { return bit_mask<false>(a, b); });
}

/// How many ones or zeros, and where the highest one is.
void add_bit_counts(std::vector<Row>& rows) {
  const Flow integer = Flow::integer;
  unary<U32, B32>(rows, integer, {"popc.b32"},
                  [](uint32_t a) { return static_cast<uint32_t>(__builtin_popcount(a)); });
  unary<U32, B64>(rows, integer, {"popc.b64"},
                  [](uint64_t a) { return static_cast<uint32_t>(__builtin_popcountll(a)); });
  unary<U32, B32>(rows, integer, {"clz.b32"},
                  [](uint32_t a) { return a ? static_cast<uint32_t>(__builtin_clz(a)) : 32u; });
  unary<U32, B64>(rows, integer, {"clz.b64"},
                  [](uint64_t a) { return a ? static_cast<uint32_t>(__builtin_clzll(a)) : 64u; });
  unary<U32, U32>(rows, integer, {"bfind.u32"}, [](uint32_t a) { return highest_bit<uint32_t>(a); });
  unary<U32, S32>(rows, integer, {"bfind.s32"},
                  [](int32_t a) { return highest_bit<uint32_t>(static_cast<uint32_t>(a < 0 ? ~a : a)); });
  unary<U32, U64>(rows, integer, {"bfind.u64"}, [](uint64_t a) { return highest_bit<uint64_t>(a); });
  unary<U32, S64>(rows, integer, {"bfind.s64"},
                  [](int64_t a) { return highest_bit<uint64_t>(static_cast<uint64_t>(a < 0 ? ~a : a)); });
  unary<U32, U32>(rows, integer, {"bfind.shiftamt.u32"},
                  [](uint32_t a) { return a ? 31u - highest_bit<uint32_t>(a) : ~0u; });
  unary<U32, S32>(rows, integer, {"bfind.shiftamt.s32"}, [](int32_t a) {
    const uint32_t bit = highest_bit<uint32_t>(static_cast<uint32_t>(a < 0 ? ~a : a));
    return bit == ~0u ? bit : 31u - bit;
  });
  unary<U32, U64>(rows, integer, {"bfind.shiftamt.u64"},
                  [](uint64_t a) { return a ? 63u - highest_bit<uint64_t>(a) : ~0u; });
  unary<U32, S64>(rows, integer, {"bfind.shiftamt.s64"}, [](int64_t a) {
    const uint32_t bit = highest_bit<uint64_t>(static_cast<uint64_t>(a < 0 ? ~a : a));
    return bit == ~0u ? bit : 63u - bit;
  });
}

void add_bit_orders(std::vector<Row>& rows) {
  const Flow permute = Flow::permute, integer = Flow::integer;
  add_extract<Extract::forward>(rows, "f4e");
  add_extract<Extract::backward>(rows, "b4e");
  add_extract<Extract::replicate>(rows, "rc8");
  add_extract<Extract::left>(rows, "ecl");
  add_extract<Extract::right>(rows, "ecr");
  add_extract<Extract::halves>(rows, "rc16");
  ternary<U32, B32, U32, S32>(rows, integer, {"fns.b32"},
                              [](uint32_t a, uint32_t b, int32_t c) { return nth_set(a, b, c); });
  rows.back().status = Status::measured_on(0);  // as specified; an H100 gave 0 for a base past 31
  binary<U32, U32, U32>(rows, integer, {"szext.clamp.u32"},
                        [](uint32_t a, uint32_t b) { return extended<true, false>(a, b); });
  binary<S32, S32, U32>(rows, integer, {"szext.clamp.s32"}, [](int32_t a, uint32_t b) {
    return static_cast<int32_t>(extended<true, true>(static_cast<uint32_t>(a), b));
  });
  binary<U32, U32, U32>(rows, integer, {"szext.wrap.u32"},
                        [](uint32_t a, uint32_t b) { return extended<false, false>(a, b); });
  binary<S32, S32, U32>(rows, integer, {"szext.wrap.s32"}, [](int32_t a, uint32_t b) {
    return static_cast<int32_t>(extended<false, true>(static_cast<uint32_t>(a), b));
  });
  unary<B32, B32>(rows, permute, {"brev.b32"}, [](uint32_t a) {
    a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
    a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
    a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(a);
  });
  unary<B64, B64>(rows, permute, {"brev.b64"}, [](uint64_t a) {
    a = ((a >> 1) & 0x5555555555555555u) | ((a & 0x5555555555555555u) << 1);
    a = ((a >> 2) & 0x3333333333333333u) | ((a & 0x3333333333333333u) << 2);
    a = ((a >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((a & 0x0f0f0f0f0f0f0f0fu) << 4);
    return __builtin_bswap64(a);
  });
}

}  // namespace

void add_logic_rows(std::vector<Row>& rows) {
  add_logic<B16>(rows, "16");
  add_logic<B32>(rows, "32");
  add_logic<B64>(rows, "64");
  predicate_binary(rows, "and.pred", [](uint32_t a, uint32_t b) { return a & b; });
  predicate_binary(rows, "or.pred", [](uint32_t a, uint32_t b) { return a | b; });
  predicate_binary(rows, "xor.pred", [](uint32_t a, uint32_t b) { return a ^ b; });
  predicate_unary(rows, Flow::logic, "not.pred", [](uint32_t a) { return ~a; });
  predicate_unary(rows, Flow::copy, "mov.pred", [](uint32_t a) { return a; });
  add_shifts<U16, S16>(rows, "16");
  add_shifts<U32, S32>(rows, "32");
  add_shifts<U64, S64>(rows, "64");
  add_funnel_shifts(rows);
  add_bit_fields(rows);
  add_bit_counts(rows);
  add_bit_orders(rows);
  add_select<B16>(rows, "{b16,u16,s16}");
  add_select<B32>(rows, "{b32,u32,s32}");
  add_select<B64>(rows, "{b64,u64,s64}");
  add_select<F32Bits>(rows, "f32");
  add_select<B64>(rows, "f64");
  add_move<B16>(rows, "{b16,u16,s16,f16,bf16}");
  add_move<B32>(rows, "{b32,u32,s32,f16x2,bf16x2}");
  add_move<F32Bits>(rows, "f32");
  add_move<B64>(rows, "{b64,u64,s64,f64}");
  ternary<B32, B32, B32, S32>(rows, Flow::select, {"slct.{b32,u32,s32,f32}.s32"},
                              [](uint32_t a, uint32_t b, int32_t c) { return c >= 0 ? a : b; });
  ternary<B64, B64, B64, S32>(rows, Flow::select, {"slct.{b64,u64,s64,f64}.s32"},
                              [](uint64_t a, uint64_t b, int32_t c) { return c >= 0 ? a : b; });
  // -0 is no less than zero, nor is a subnormal that is flushed; a NaN chooses b.
  ternary<B32, B32, B32, F32>(rows, Flow::select, {"slct.{b32,u32,s32,f32}.f32"},
                              [](uint32_t a, uint32_t b, float c) { return c >= 0 ? a : b; });
  ternary<B64, B64, B64, F32>(rows, Flow::select, {"slct.{b64,u64,s64,f64}.f32"},
                              [](uint64_t a, uint64_t b, float c) { return c >= 0 ? a : b; });
  ternary<B32, B32, B32, F32>(rows, Flow::select, {"slct.ftz.{b32,u32,s32,f32}.f32"},
                              [](uint32_t a, uint32_t b, float c) { return c > -0x1p-126f ? a : b; });
  ternary<B64, B64, B64, F32>(rows, Flow::select, {"slct.ftz.{b64,u64,s64,f64}.f32"},
                              [](uint64_t a, uint64_t b, float c) { return c > -0x1p-126f ? a : b; });
}

}  // namespace assay::vm::ASSAY_LANES
