// Making rows from lane functions. The files in this folder are compiled once per instruction set of the
// host, with ASSAY_LANES naming the set, into distinct namespaces; they use no library templates, so that no
// code built for a newer processor can be linked into the portable set. All sets give the same bits.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/instruction_row.h"

namespace assay::vm {

/// The plain-data part of a Row that these files fill.
struct LaneRow {
  Kind kind = Kind::lanes;
  Flow flow = Flow::none;
  Status status = Status::exact();
  ptx::Type result = ptx::Type::none;
  ptx::Type sources[4] = {};
  LaneFunction lanes = nullptr;
  MaskFunction mask = nullptr;
  RealFunction real = nullptr;
};

/// Appends a row whose pattern is the concatenation of `parts`. (rows.cpp)
void add_lane_row(std::vector<Row>& rows, const LaneRow& row, std::initializer_list<const char*> parts);

#ifdef ASSAY_LANES
namespace ASSAY_LANES {

#define ASSAY_LANE_ROWS(family) void add_##family##_rows(std::vector<Row>&);
#include "src/base/vm/rows/lane_rows.def"
#undef ASSAY_LANE_ROWS
void add_all_rows(std::vector<Row>&);
LaneKit kit();
// Of the kit, in matrix_lanes.cpp.
void spread_words(const uint32_t* lanes, int32_t* to, int stride);
void collect_words(uint32_t* lanes, const int32_t* from, int stride);
void spread_halves(const uint32_t* lanes, int32_t* to, int stride);
bool sum_tile(const TileSum&, MatrixTile&);

using ptx::Type;

/// Lane types: how a value of a PTX type is read from and written to a cell.
template <class Value, class Stored, Type T>
struct Lane {
  using value = Value;
  static constexpr Type type = T;
  typedef Stored __attribute__((may_alias)) element;
  static Value get(const void* cell, int i) {
    return static_cast<Value>(static_cast<const element*>(cell)[i]);
  }
  static void put(void* cell, int i, Value x) { static_cast<element*>(cell)[i] = static_cast<Stored>(x); }
};

// Signed narrow results are sign-extended over the 32-bit cell, unsigned ones zero-extended (PTX ISA,
// "Operand size exceeding instruction-type size").
using U8 = Lane<uint8_t, uint32_t, Type::u8>;
using S8 = Lane<int8_t, int32_t, Type::s8>;
using U16 = Lane<uint16_t, uint32_t, Type::u16>;
using S16 = Lane<int16_t, int32_t, Type::s16>;
using U32 = Lane<uint32_t, uint32_t, Type::u32>;
using S32 = Lane<int32_t, int32_t, Type::s32>;
using U64 = Lane<uint64_t, uint64_t, Type::u64>;
using S64 = Lane<int64_t, int64_t, Type::s64>;
using B16 = Lane<uint16_t, uint32_t, Type::b16>;
using B32 = Lane<uint32_t, uint32_t, Type::b32>;
using B64 = Lane<uint64_t, uint64_t, Type::b64>;
using F32 = Lane<float, float, Type::f32>;
using F32Bits = Lane<uint32_t, uint32_t, Type::f32>;
using F64 = Lane<double, double, Type::f64>;
using F64Bits = Lane<uint64_t, uint64_t, Type::f64>;
using F16 = Lane<uint16_t, uint32_t, Type::f16>;
using F16x2 = Lane<uint32_t, uint32_t, Type::f16x2>;
using BF16 = Lane<uint16_t, uint32_t, Type::bf16>;
using BF16x2 = Lane<uint32_t, uint32_t, Type::bf16x2>;
using TF32 = Lane<uint32_t, uint32_t, Type::tf32>;

/// A predicate as a source.
struct Pred {
  using value = bool;
  static constexpr Type type = Type::pred;
  static bool get(const void* cell, int i) { return (*static_cast<const uint32_t*>(cell) >> i) & 1; }
};

/// Every lane's result by F. Lanes are independent and a destination is a source or apart from it: ivdep
/// holds.
template <class F, class D, class A>
void unary_lanes(void* d, const void* a, const void*, const void*, const void*) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) D::put(d, i, F{}(A::get(a, i)));
}
template <class F, class D, class A, class B>
void binary_lanes(void* d, const void* a, const void* b, const void*, const void*) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) D::put(d, i, F{}(A::get(a, i), B::get(b, i)));
}
template <class F, class D, class A, class B, class C>
void ternary_lanes(void* d, const void* a, const void* b, const void* c, const void*) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) D::put(d, i, F{}(A::get(a, i), B::get(b, i), C::get(c, i)));
}
template <class F, class D, class A, class B, class C, class E>
void quaternary_lanes(void* d, const void* a, const void* b, const void* c, const void* e) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) D::put(d, i, F{}(A::get(a, i), B::get(b, i), C::get(c, i), E::get(e, i)));
}

/// Rows from a captureless lambda over lane values: unary<D, A>(rows, flow, {"neg.s32"}, [](int32_t a)
/// {...}).
template <class D, class A, class F>
void unary(std::vector<Row>& rows, Flow flow, std::initializer_list<const char*> parts, F,
           RealFunction real = nullptr) {
  add_lane_row(
      rows,
      {.flow = flow, .result = D::type, .sources = {A::type}, .lanes = unary_lanes<F, D, A>, .real = real},
      parts);
}
template <class D, class A, class B, class F>
void binary(std::vector<Row>& rows, Flow flow, std::initializer_list<const char*> parts, F,
            RealFunction real = nullptr) {
  add_lane_row(rows,
               {.flow = flow,
                .result = D::type,
                .sources = {A::type, B::type},
                .lanes = binary_lanes<F, D, A, B>,
                .real = real},
               parts);
}
template <class D, class A, class B, class C, class F>
void ternary(std::vector<Row>& rows, Flow flow, std::initializer_list<const char*> parts, F,
             RealFunction real = nullptr) {
  add_lane_row(rows,
               {.flow = flow,
                .result = D::type,
                .sources = {A::type, B::type, C::type},
                .lanes = ternary_lanes<F, D, A, B, C>,
                .real = real},
               parts);
}
template <class D, class A, class B, class C, class E, class F>
void quaternary(std::vector<Row>& rows, Flow flow, std::initializer_list<const char*> parts, F) {
  add_lane_row(rows,
               {.flow = flow,
                .result = D::type,
                .sources = {A::type, B::type, C::type, E::type},
                .lanes = quaternary_lanes<F, D, A, B, C, E>},
               parts);
}

}  // namespace ASSAY_LANES
#endif

}  // namespace assay::vm
