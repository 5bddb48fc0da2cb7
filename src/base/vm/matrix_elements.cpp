#include "src/base/vm/matrix_elements.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

/// Byte of an element of a matrix in shared memory; `mn` is its row (A) or column (B).
uint64_t shared_byte(const MatrixDescriptor& matrix, bool mn_major, int bits, uint32_t mn, uint32_t k) {
  const auto bytes = static_cast<uint32_t>(bits / 8);
  const uint32_t line = mn_major ? k : mn, along = (mn_major ? mn : k) * bytes;
  return uint64_t{piece_address(matrix, mn_major, line, along / 16)} + along % 16;
}

int per_register(int bits) {
  return bits >= 32 ? 1 : 32 / bits;
}

}  // namespace

int first_row_of(const Warp& warp) {
  return static_cast<int>(16 * (warp.index % 4));
}

MatrixSources matrix_sources(const Warp& warp, const Op& op) {
  const MatrixForm form = MatrixForm::of(op.immediate);
  MatrixSources sources;
  if (form.sparse) std::copy_n(warp.word(op.slots[op.slot_count - 1]), 32, sources.metadata.begin());
  if (!form.warpgroup) return sources;
  if (form.a_in_shared) sources.a_descriptor = warp.wide(op.s[0])[0];
  sources.b_descriptor = warp.wide(op.s[1])[0];
  sources.adds = ((op.third_negated ? ~warp.mask(op.s[2]) : warp.mask(op.s[2])) & 1) != 0;
  sources.shared_base = uint64_t{warp.rank} * warp.block->shared_stride;
  return sources;
}

MatrixElements::MatrixElements(const Warp& warp, const Op& op)
    : MatrixElements(op, warp.index, matrix_sources(warp, op)) {}

MatrixElements::MatrixElements(const Op& op, uint32_t warp, const MatrixSources& sources)
    : form_(MatrixForm::of(op.immediate)), sums_(&sums_of(form_)) {
  first_a_ = form_.sum_registers();
  first_b_ = first_a_ + form_.a_registers();
  first_c_ = form_.warpgroup ? 0 : first_b_ + form_.b_registers();
  metadata_ = sources.metadata;
  if (!form_.warpgroup) return;
  first_row_ = 16 * (warp % 4);
  if (form_.a_in_shared) a_matrix_ = decode_descriptor(sources.a_descriptor);
  b_matrix_ = decode_descriptor(sources.b_descriptor);
  adds_ = sources.adds;
  shared_base_ = sources.shared_base;
}

// The inverse of a_place, b_place and sum_place.
ElementPlace MatrixElements::a(int row, int k) const {
  const int bits = format_of(form_.a).bits, per = per_register(bits), group = k / per;
  if (form_.a_in_shared)
    return {-1, 0, 0,
            shared_base_ + shared_byte(a_matrix_, form_.a_by_column, bits,
                                       first_row_ + static_cast<uint32_t>(row), static_cast<uint32_t>(k))};
  const int blocks = form_.rows == 32 ? 2 : 1;
  const int reg = form_.rows == 8
                      ? group / 4
                      : 2 * (group / 4) + row % 16 / 8 + row / 16 * (form_.a_registers() / blocks);
  return {first_a_ + reg, 4 * (row % 8) + group % 4, k % per * bits, 0};
}

ElementPlace MatrixElements::b(int k, int column) const {
  const int bits = format_of(form_.b).bits, per = per_register(bits), group = k / per;
  if (form_.warpgroup)
    return {-1, 0, 0,
            shared_base_ + shared_byte(b_matrix_, form_.b_by_row, bits, static_cast<uint32_t>(column),
                                       static_cast<uint32_t>(k))};
  const int reg = group / 4 + column / 8 * (form_.b_registers() / form_.tiles);
  return {first_b_ + reg, 4 * (column % 8) + group % 4, k % per * bits, 0};
}

const std::vector<ElementPlace>& MatrixElements::sums_of(const MatrixForm& form) {
  static thread_local std::vector<std::pair<uint64_t, std::unique_ptr<std::vector<ElementPlace>>>> known;
  for (const auto& [bits, places] : known)
    if (bits == form.bits()) return *places;
  auto made = std::make_unique<std::vector<ElementPlace>>();
  const bool halves = form.sum == Element::f16;
  const int blocks = form.rows == 32 ? 2 : 1, of_tile = form.sum_registers() / (form.tiles * blocks);
  for (int row = 0; row < form.rows; ++row)
    for (int column = 0; column < form.columns(); ++column) {
      const int tile = row / 16 * form.tiles + column / 8,
                reg = halves ? row % 16 / 8 : 2 * (row % 16 / 8) + column % 2;
      made->push_back(
          {tile * of_tile + reg, 4 * (row % 8) + column % 8 / 2, halves ? 16 * (column % 2) : 0, 0});
    }
  return *known.emplace_back(form.bits(), std::move(made)).second;
}

}  // namespace assay::vm
