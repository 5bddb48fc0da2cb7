// Exact shadows: beside a float value of the machine, its exact counterpart as the double-double (value,
// error), a bound, and the parts of the error by source line. Registers and memories hold them per 16-bit
// half, at the first half of a value; `kind` says what starts there.
//
//   exact value = machine value + error
//   |error| <= bound: the sum of |roundings| carried along the same slopes, nothing cancelled
//   error = sum of parts, where all lines are followed
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "src/base/numerics/format.h"
#include "src/base/ptx/program.h"
#include "src/base/vm/cell_memory.h"

namespace assay::vm {

/// What a half is: what it seems (integers, inputs, literals); made of rounded values, in a way that no
/// shadow follows (ErrorPlan::strict); a further half of the value before it; the first half of a shadowed
/// value.
enum class ErrorKind : uint8_t { none, lost, tail, f16, bf16, f32, f64 };

inline int halves_of(ErrorKind kind) {
  return kind == ErrorKind::f64 ? 4 : kind == ErrorKind::f32 ? 2 : 1;
}
inline bool is_shadowed(ErrorKind kind) {
  return kind >= ErrorKind::f16;
}
/// Of an element of the type: f16x2 holds f16 in each half, tf32 is an f32 word. none for integers.
inline ErrorKind error_kind_of(ptx::Type type) {
  using ptx::Type;
  if (type == Type::f32 || type == Type::tf32) return ErrorKind::f32;
  if (type == Type::f16 || type == Type::f16x2) return ErrorKind::f16;
  if (type == Type::bf16 || type == Type::bf16x2) return ErrorKind::bf16;
  return type == Type::f64 ? ErrorKind::f64 : ErrorKind::none;
}

/// Of a tensor's elements.
inline ErrorKind error_kind_of(Dtype dtype) {
  return dtype == Dtype::fp64   ? ErrorKind::f64
         : dtype == Dtype::fp16 ? ErrorKind::f16
         : dtype == Dtype::bf16 ? ErrorKind::bf16
                                : ErrorKind::f32;
}

/// Of a shadowed value; fp32 of none.
inline Dtype dtype_of(ErrorKind kind) {
  return kind == ErrorKind::f16    ? Dtype::fp16
         : kind == ErrorKind::bf16 ? Dtype::bf16
         : kind == ErrorKind::f64  ? Dtype::fp64
                                   : Dtype::fp32;
}

/// Of the 32 lanes of a half.
inline bool is_all(const ErrorKind* kinds, ErrorKind kind) {
  uint64_t words[4];
  std::memcpy(words, kinds, sizeof words);
  const uint64_t wanted = 0x0101010101010101u * static_cast<uint64_t>(kind);
  return words[0] == wanted && words[1] == wanted && words[2] == wanted && words[3] == wanted;
}

/// Value of an fp16 or bf16 pattern, 16 bits. (error_trace.cpp)
double half_of(ErrorKind kind, uint32_t bits);

/// Zeros of either sign, all of them.
inline bool is_zero(const double* x, size_t count) {
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) seen |= std::bit_cast<uint64_t>(x[i]) << 1;
  return seen == 0;
}

/// A run of cells, one per half (cell_memory.h).
struct ErrorCells {
  std::unique_ptr<ErrorKind[], FreeMemory> kind;
  std::unique_ptr<double[], FreeMemory> error, bound;  ///< anything where no value begins
  std::unique_ptr<double[], FreeMemory> part_errors;   ///< [part][cell]
  size_t count = 0, room = 0;
  int parts = 0, parts_of_room = 0;
  /// Of registers, by row (the 32 cells of a half of a register): parts that may not be zero in all of them,
  /// as they lie in memory; whether all their kinds are none, if that is known.
  std::vector<uint16_t> parted;
  std::vector<uint8_t> plain;
  bool holds = false;  ///< of memory, where threads may set it alike: some kind may not be none

  /// What a cell starts as: of no value, with room for so many parts.
  struct Cell {
    ErrorKind kind = ErrorKind::none;
    int parts = 0;
  };
  /// `blank` is of no kind. Arrays that are large enough stay, and what they hold of parts with them.
  void reset(size_t n, Cell blank) {
    parts = blank.parts;
    if (n <= room && blank.parts <= parts_of_room) {
      clear();
      count = n;
      return;
    }
    count = n, holds = false;
    room = std::bit_ceil(std::max(n, room)), parts_of_room = std::max(blank.parts, parts_of_room);
    kind = lazy_zeros<ErrorKind>(room);  // `blank` is none
    error = lazy_zeros<double>(room), bound = lazy_zeros<double>(room);
    if (parts_of_room > 0) part_errors = lazy_zeros<double>(room * static_cast<size_t>(parts_of_room));
    parted.clear(), plain.clear();
  }
  size_t bytes() const { return room * (1 + sizeof(double) * (2 + static_cast<size_t>(parts_of_room))); }
  bool may_hold() const { return std::atomic_ref(const_cast<bool&>(holds)).load(std::memory_order_relaxed); }
  void begin_to_hold() { std::atomic_ref(holds).store(true, std::memory_order_relaxed); }
  /// All kinds become none; those that may be another. Behind `count` none is.
  void clear() {
    const size_t all = std::min(plain.size(), (count + kRow - 1) / kRow);
    for (size_t first = 0; first < all; first += sizeof(uint64_t)) {
      constexpr uint64_t kAllPlain = 0x0101010101010101u;
      const size_t behind = std::min(first + sizeof kAllPlain, all);
      uint64_t rows = kAllPlain;
      std::memcpy(&rows, &plain[first], behind - first);
      if (rows == kAllPlain) continue;
      for (size_t row = first; row < behind; ++row)
        if (!std::exchange(plain[row], 1)) std::fill_n(kind.get() + kRow * row, kRow, ErrorKind::none);
    }
    if (holds) std::fill_n(kind.get(), count, ErrorKind::none), holds = false;
  }
  /// Of registers, whose kinds are all none.
  void begin_rows() {
    if (plain.empty()) parted.assign(room / kRow, 0), plain.assign(room / kRow, 1);
  }
  /// The parts of a whole row are written, and those in `some` are not all zero.
  void note_parts(size_t cell, uint32_t some) {
    const uint32_t others = parted[cell / kRow] & ~((1u << parts) - 1);  // of an earlier trace, still there
    parted[cell / kRow] = static_cast<uint16_t>(others | some);
  }
  /// A row whose cells are written one by one.
  void touch_row(size_t cell) { parted[cell / kRow] = kAllParts, plain[cell / kRow] = 0; }
  static constexpr size_t kRow = 32;
  static constexpr uint16_t kAllParts = 0xffff;
  void fill(size_t first, size_t n, Cell cell) {
    std::fill_n(kind.get() + first, n, cell.kind);
    if (cell.kind != ErrorKind::none) begin_to_hold();
  }
  void copy(size_t to, const ErrorCells& from_cells, size_t from) {
    kind[to] = from_cells.kind[from];
    if (is_shadowed(kind[to])) copy_values(to, from_cells, from);
  }
  static constexpr size_t exact = SIZE_MAX, unfollowed = SIZE_MAX - 1;
  /// The cell that holds the shadow of a value whose halves lie at `at`, at + step ...; `exact` where none of
  /// them is anything but what it seems, else `unfollowed`. An f32 that is a bf16 widened by its bits
  /// (`high_alone`: the low half is 0) has that one's shadow.
  size_t find(size_t at, size_t step, ErrorKind wanted, bool high_alone) const {
    const auto halves = static_cast<size_t>(halves_of(wanted));
    size_t tails = 1, plain = kind[at] == ErrorKind::none;
    for (size_t half = 1; half < halves; ++half) {
      tails += kind[at + half * step] == ErrorKind::tail;
      plain += kind[at + half * step] == ErrorKind::none;
    }
    if (kind[at] == wanted && tails == halves) return at;
    if (plain == halves) return exact;
    const bool widened = wanted == ErrorKind::f32 && high_alone && kind[at] == ErrorKind::none;
    return widened && kind[at + step] == ErrorKind::bf16 ? at + step : unfollowed;
  }
  void copy_values(size_t to, const ErrorCells& from_cells, size_t from) {
    error[to] = from_cells.error[from];
    bound[to] = from_cells.bound[from];
    for (int p = 0; p < parts; ++p) part(p)[to] = from_cells.part(p)[from];
  }
  double* part(int p) { return part_errors.get() + static_cast<size_t>(p) * room; }
  const double* part(int p) const { return part_errors.get() + static_cast<size_t>(p) * room; }
};

/// Global memory: one area per allocation of the program, ascending base.
using ErrorMemory = GlobalCells<ErrorCells>;

}  // namespace assay::vm
