// Exact shadows: beside a float value of the machine, its exact counterpart as the double-double (value,
// error), a bound, and the parts of the error by source line. Registers and memories hold them per 16-bit
// half, at the first half of a value; `kind` says what starts there.
//
//   exact value = machine value + error
//   |error| <= bound: the sum of |roundings| carried along the same slopes, nothing cancelled
//   error = sum of parts, where all lines are followed
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

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

/// A run of cells, one per half (cell_memory.h).
struct ErrorCells {
  std::unique_ptr<ErrorKind[], FreeMemory> kind;
  std::unique_ptr<double[]> error, bound;  ///< anything where no value begins
  std::unique_ptr<double[]> part_errors;   ///< [part][cell]
  size_t count = 0;
  int parts = 0;

  /// What a cell starts as: of no value, with room for so many parts.
  struct Cell {
    ErrorKind kind = ErrorKind::none;
    int parts = 0;
  };
  void reset(size_t n, Cell blank) {
    if (n == count && blank.parts == parts) return fill(0, n, blank);
    count = n, parts = blank.parts;
    kind = lazy_zeros<ErrorKind>(n);  // `blank` is none
    error = std::make_unique_for_overwrite<double[]>(n);
    bound = std::make_unique_for_overwrite<double[]>(n);
    if (parts > 0) part_errors = std::make_unique_for_overwrite<double[]>(n * static_cast<size_t>(parts));
  }
  void fill(size_t first, size_t n, Cell cell) { std::fill_n(kind.get() + first, n, cell.kind); }
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
  double* part(int p) { return part_errors.get() + static_cast<size_t>(p) * count; }
  const double* part(int p) const { return part_errors.get() + static_cast<size_t>(p) * count; }
};

/// Global memory: one area per allocation of the program, ascending base.
using ErrorMemory = GlobalCells<ErrorCells>;

}  // namespace assay::vm
