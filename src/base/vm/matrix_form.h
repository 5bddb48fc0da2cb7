// What a tensor-core instruction multiplies: shape, formats and modifiers, and where its elements lie in the
// registers of a warp. Read by the rows, by the recording machines and by tools/fidelity.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::vm {

/// Formats of operands and sums.
enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, f32, f64, s8, u8, s4, u4, b1, s32 };

struct ElementFormat {
  std::string_view name;  ///< as PTX spells it
  int bits;               ///< in a register or in memory
  bool integer;
  int fraction_bits, exponent_bits;  ///< of floats
  int dropped_bits = 0;              ///< tf32: the low bits of the fp32 word, cut off
  bool infinities = true;            ///< e4m3 has none: its largest exponent holds numbers and one NaN
  ptx::Type type = ptx::Type::none;  ///< none where PTX registers have no such type
};
const ElementFormat& format_of(Element);
std::optional<Element> element_named(std::string_view);
/// The formats that an instruction names, in PTX order: of mma D, A, B, C, of wgmma D, A, B. What it leaves
/// out is left out.
std::vector<Element> elements_of(const ptx::Instruction&);
/// Whether its A is sparse (.sp, .sp::ordered_metadata).
bool has_sparse_a(const ptx::Instruction&);
/// Value of a pattern of `bits` bits. Exact.
double value_of(Element, uint64_t pattern);

/// One instruction as one warp executes it: D[rows][columns] = A[rows][k] * B[k][columns] + C. Eight bytes,
/// so that it travels in Op::immediate.
struct MatrixForm {
  uint8_t rows = 16;  ///< of the warp's part: 16, 8 (mma.m8n8, wmma.m8n32) or 32 (wmma.m32n8)
  uint8_t tiles = 1;  ///< columns / 8
  uint16_t k = 0;
  Element a : 4 = Element::f16, b : 4 = Element::f16;  ///< formats of A and B
  Element sum : 4 = Element::f32;                      ///< of C and D
  bool warpgroup : 1 = false;    ///< wgmma: four warps, 16 rows each; B (and A) in shared memory
  bool a_in_shared : 1 = false;  ///< wgmma: A by descriptor
  bool negate_a : 1 = false, negate_b : 1 = false;
  bool a_by_column : 1 = false, b_by_row : 1 = false;  ///< wgmma: M-major A, N-major B (imm-trans)
  bool saturate : 1 = false;                           ///< integers: .satfinite
  bool transposed : 1 = false;                         ///< wmma.m8n32: computed as D^T = B^T A^T
  bool exclusive : 1 = false;  ///< b1: bits that differ are counted (.xor), not those in both
  uint8_t unused : 3 = 0;      ///< so that equal forms have equal bits
  /// Products per step where the instruction has fewer than the architecture; 0: it has not.
  uint8_t split : 5 = 0;
  uint8_t selector : 2 = 0;  ///< .sp: which lanes of four give the metadata
  bool sparse : 1 = false;   ///< .sp: of A every other element (of four two, of eight two pairs)

  uint64_t bits() const;
  static MatrixForm of(uint64_t bits);
  /// "m16n8k16": sets rows (wgmma: 16 of 64), tiles and k. False: no shape.
  bool set_shape(std::string_view);
  int columns() const { return 8 * tiles; }
  int a_depth() const { return sparse ? k / 2 : k; }  ///< elements of A that a row has
  /// Of a sparse form the dense one that has as many products.
  MatrixForm kept() const;
  /// 32-bit registers per lane (f64: 64-bit ones).
  int a_registers() const { return a_in_shared ? 0 : registers(rows, a_depth(), a); }
  int b_registers() const { return warpgroup ? 0 : registers(8, k, b) * tiles; }
  int sum_registers() const { return registers(rows, 8, sum) * tiles; }

 private:
  static int registers(int lines, int length, Element e) {
    const int bits = format_of(e).bits;
    return bits == 64 ? lines * length / 32 : lines * length * bits / 1024;
  }
};
static_assert(sizeof(MatrixForm) == 8);

inline bool is_matrix_product(ptx::Operation operation) {
  return operation == ptx::Operation::mma || operation == ptx::Operation::wgmma_mma_async ||
         operation == ptx::Operation::wmma_mma;
}

/// PTX ISA, "Matrix fragments for mma": lane = 4 g + t; a 32-bit register holds `per` = 32 / bits neighbours
/// along k (one for 64 bits). In 16-row tiles register r of A is row g + 8 (r mod 2),
/// k = per (t + 4 (r div 2)) + i; in 8-row tiles row g, k = per (t + 4 r) + i. Register r of B is column g,
/// k = per (t + 4 r) + i. Sums of 32 bits and more: register r is row g + 8 (r div 2), column 2 t + (r mod
/// 2); f16 sums: register r is row g + 8 r, columns 2 t and 2 t + 1.
struct FragmentPlace {
  int row, column;
};
FragmentPlace a_place(int rows, int per, int reg, int lane, int i);  ///< row of A, k
FragmentPlace b_place(int per, int reg, int lane, int i);            ///< k, column of B
FragmentPlace sum_place(bool halves, int reg, int lane, int i);      ///< row and column of one 8-column tile

/// PTX ISA, "Sparse matrix storage" of mma.sp and of wgmma.mma_async.sp (a warp's 16 rows): the k of the
/// `at`th element that a row of A has, by the 32 lanes' metadata. A word holds 16 columns of a 16-bit format,
/// or 8 of tf32, of rows g (its low half) and g + 8; of an 8-bit format 32 columns, of a 4-bit one 64, of row
/// g, the next lane's of g + 8.
int sparse_column(const MatrixForm&, const uint32_t* metadata, int row, int at);
/// The lane whose metadata say so, and the choices that the selector has.
int metadata_lane(const MatrixForm&, int row, int at);
int selectors_of(const MatrixForm&);

}  // namespace assay::vm
