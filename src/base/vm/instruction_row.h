// A row of the instruction table: the form as PTX spells it, what it means (signature.h) and what it does to
// 32 lanes. Decoding, execution and `assay list instructions` read the row; nothing else enumerates
// instructions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/signature.h"

namespace assay::vm {

struct Warp;
struct Op;

/// A pure function of cells: writes all 32 lanes of `d` (inactive ones hold anything; the engine blends them
/// away). `d` may be one of the sources. Unused sources are null.
using LaneFunction = void (*)(void* d, const void* a, const void* b, const void* c, const void* e);
/// One step of a row's real meaning f on 32 lanes, as doubles (real_meaning.h in rows/).
struct RealStep {
  const double* result;    ///< the machine's, d
  const double* value[3];  ///< the machine's operands, x
  const double* error[3];  ///< e: exact operand - x
  const double* bound[3];  ///< of |e|, no rounding cancelled
  double* local;           ///< f(x) - d
  double* slope[3];        ///< f(x + e) - f(x) = sum of slope[i] error[i]; anything where error[i] = 0
  double* result_error;    ///< local + sum of slope[i] error[i]
  double* result_bound;    ///< |local| + sum of |slope[i]| bound[i]
};
using RealFunction = void (*)(const RealStep&);
/// A comparison: bit i of the result is lane i's.
using MaskFunction = uint32_t (*)(const void* a, const void* b);
/// Anything that needs the warp: memory, exchange between lanes, tensor cores. Touches only lanes in `mask`.
/// False: the warp's block has trapped (Warp::block->trap says why).
using WarpFunction = bool (*)(Warp&, const Op&, uint32_t mask);

/// How the engine runs a row. For the engine, the rows and the decoder alone: what it means stands in
/// Meaning.
enum class Kind : uint8_t {
  lanes,        ///< Row::lanes on d, s[0..3]
  exponential,  ///< the same, and the arguments of active lanes enter the exponent ranges
  compare,      ///< Row::mask, combined with a predicate where the form says .and/.or/.xor
  warp,         ///< Row::warp
  async_wait,   ///< cp.async.wait_group, wait_all: Op::immediate groups may stay outstanding (~0: wait for
                ///< everything)
  branch,
  branch_table,
  call,
  ret,
  exit,
  barrier,
  trap,
  nothing
};

Control control_of(Kind);

struct Row : Meaning {
  std::string pattern;  ///< "add.{u32,s32}": alternatives in braces, possibly empty
  Kind kind = Kind::nothing;
  ptx::Form form;  ///< of the pattern's first alternative
  LaneFunction lanes = nullptr;
  MaskFunction mask = nullptr;
  WarpFunction warp = nullptr;
  /// What the row means on real numbers; per half of a packed type. Null: no meaning of its own (integers,
  /// rounding to integral values), shadows start anew at its result.
  RealFunction real = nullptr;
  /// Fills the parts of an Op that the plain signature does not cover; null: sources and result say it all.
  void (*decode)(class Decoder&, const ptx::Instruction&, Op&) = nullptr;
};

/// Every row.
const std::vector<Row>& rows();
/// Instruction sets of the host for which the lane rows were compiled and that this processor has.
std::vector<std::string> lane_sets();
/// The rows of lane functions of one set, in the same order in each.
std::vector<Row> lane_rows(std::string_view set);
/// The forms that a row's pattern stands for.
std::vector<std::string> forms_of(const Row&);
/// The row of a dotted opcode, cache and ordering qualifiers dropped; null if there is none.
const Row* find_row(std::string_view opcode);
/// The row of an instruction; mov with a vector operand packs or unpacks: rows of their own.
const Row* find_row(const ptx::Instruction&);

/// Lanes of a finished step.
struct ErrorMasks {
  uint32_t finite;   ///< result_error is
  uint32_t rounded;  ///< local is not 0
  uint32_t parted;   ///< |error| > parting |value + error|
  uint32_t large;    ///< |local| >= ratio |value|, or nearly
};

/// Memory that one instruction reaches: offsets up to `last` from `base`, addresses without a bit of
/// `low_bits`.
struct Window {
  uint64_t base, last, low_bits;
  std::byte* data;  ///< at `base`
};

/// How the addresses of 32 lanes lie to each other; `outside`: one is not where it may be.
enum class Places : uint8_t { outside, apart, one, in_row };

/// How many products of which operands make one step of a tensor-core sum in fp32 (SumRule).
struct TileSum {
  int k, per_step, fraction_bits;
  bool half;         ///< of f16; else the operands are the leading bits of fp32
  int shift;         ///< of an operand's word to fp32
  uint32_t dropped;  ///< bits of the word that are cut off
};
struct MatrixTile;

/// Engine steps compiled per instruction set of the host.
struct LaneKit {
  void (*blend_words)(void* d, const void* from, uint32_t mask);
  void (*blend_wide)(void* d, const void* from, uint32_t mask);
  /// Smallest and largest argument of active lanes as order-preserving integers (see exponent_order); NaN,
  /// and -Inf for the smallest, left out; returns the mask of NaN lanes.
  uint32_t (*argument_range)(const void* x, uint32_t mask, int32_t* smallest, int32_t* largest);
  /// 32 floats (a word cell) as doubles.
  void (*widen_floats)(double* d, const void* x);
  /// Smallest and largest of active lanes, or of their magnitudes. NaN counts for nothing.
  void (*value_range)(const double* x, bool magnitudes, uint32_t mask, double* smallest, double* largest);
  ErrorMasks (*error_masks)(const RealStep&, double parting, double ratio);
  /// Lanes in which both are finite; `bound` may be null.
  uint32_t (*finite_lanes)(const double* error, const double* bound);
  /// result_bound without |local|; with `own` of it, `roundoff` of |result_error| and `share` of the product
  /// of `a` and `b`, where share is above 0. False: it is finite in all lanes.
  bool (*widen_bounds)(const RealStep&, double own, double roundoff, double share, const double* a,
                       const double* b);
  /// address[i] = base[i] + offset; of words in 32 bits, around which they wrap.
  void (*offset_wide)(uint64_t* address, const void* base, uint64_t offset);
  void (*offset_words)(uint64_t* address, const void* base, uint32_t offset);
  /// Lanes with an address in [base, base + bytes).
  uint32_t (*lanes_within)(const uint64_t* address, uint64_t base, uint64_t bytes);
  /// Host pointers of all lanes; those in `mask` must lie in the window, aligned. `one` and `in_row`, each
  /// low_bits + 1 bytes behind the last, only where all are in `mask`.
  Places (*place_lanes)(std::byte** host, const uint64_t* address, uint32_t mask, const Window&);
  /// shfl: the lane that each reads, itself where that is out of its segment; returns those that are not.
  /// `mode`: ShuffleMode.
  uint32_t (*shuffle_sources)(uint64_t mode, const void* b, const void* c, uint32_t* from);
  /// A register of a fragment (matrix_form.h), lane 4 g + t, to to[t * stride + g] and back.
  void (*spread_words)(const uint32_t* lanes, int32_t* to, int stride);
  void (*collect_words)(uint32_t* lanes, const int32_t* from, int stride);
  /// Its halves: half i to to[(2 t + i) * stride + g].
  void (*spread_halves)(const uint32_t* lanes, int32_t* to, int stride);
  /// d = a b + c of a tile; false, with d undefined, where an operand is no number or far from 1.
  bool (*sum_tile)(const TileSum&, MatrixTile&);
};

enum ShuffleMode : uint64_t { up, down, bfly, idx };
/// Of one of lane_sets().
LaneKit lane_kit(std::string_view set);
/// Of the host's.
LaneKit host_lane_kit();
/// Part of its callers, which are many and short; never a function of its own, which lane rows might bring.
[[gnu::always_inline]] inline const LaneKit& lane_kit() {
  static const LaneKit made = host_lane_kit();
  return made;
}

}  // namespace assay::vm
