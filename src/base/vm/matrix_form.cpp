#include "src/base/vm/matrix_form.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>

namespace assay::vm {
namespace {

using ptx::Type;

constexpr std::array<ElementFormat, 13> kFormats{{
    {"f16", 16, false, 10, 5, 0, true, Type::f16},
    {"bf16", 16, false, 7, 8, 0, true, Type::bf16},
    {"tf32", 32, false, 10, 8, 13, true, Type::tf32},
    {"e4m3", 8, false, 3, 4, 0, false},
    {"e5m2", 8, false, 2, 5},
    {"f32", 32, false, 23, 8, 0, true, Type::f32},
    {"f64", 64, false, 52, 11, 0, true, Type::f64},
    {"s8", 8, true, 0, 0, 0, false, Type::s8},
    {"u8", 8, true, 0, 0, 0, false, Type::u8},
    {"s4", 4, true, 0, 0},
    {"u4", 4, true, 0, 0},
    {"b1", 1, true, 0, 0},
    {"s32", 32, true, 0, 0, 0, false, Type::s32},
}};

}  // namespace

const ElementFormat& format_of(Element e) {
  return kFormats[static_cast<size_t>(e)];
}

std::optional<Element> element_named(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (kFormats[i].name == name) return static_cast<Element>(i);
  return std::nullopt;
}

double value_of(Element e, uint64_t pattern) {
  const ElementFormat& f = format_of(e);
  if (e == Element::f64) return std::bit_cast<double>(pattern);
  if (f.integer) {
    const int unused = 64 - f.bits;
    const bool is_signed = e != Element::u8 && e != Element::u4 && e != Element::b1;
    return is_signed ? static_cast<double>(static_cast<int64_t>(pattern << unused) >> unused)
                     : static_cast<double>(pattern << unused >> unused);
  }
  pattern >>= f.dropped_bits;
  const uint64_t mask = (1u << f.exponent_bits) - 1,
                 fraction = pattern & ((uint64_t{1} << f.fraction_bits) - 1);
  const uint64_t exponent = pattern >> f.fraction_bits & mask;
  const bool negative = pattern >> (f.fraction_bits + f.exponent_bits) & 1;
  const uint64_t all_ones = (uint64_t{1} << f.fraction_bits) - 1;
  double magnitude = 0;
  if (exponent == mask && (f.infinities || fraction == all_ones))
    magnitude = f.infinities && fraction == 0 ? HUGE_VAL : std::nan("");
  else
    magnitude =
        std::ldexp(static_cast<double>(exponent ? fraction | uint64_t{1} << f.fraction_bits : fraction),
                   static_cast<int>(exponent ? exponent : 1) - static_cast<int>(mask >> 1) - f.fraction_bits);
  return negative ? -magnitude : magnitude;
}

uint64_t MatrixForm::bits() const {
  return std::bit_cast<uint64_t>(*this);
}

MatrixForm MatrixForm::of(uint64_t bits) {
  return std::bit_cast<MatrixForm>(bits);
}

MatrixForm MatrixForm::kept() const {
  MatrixForm made = *this;
  made.sparse = false, made.selector = 0, made.k = static_cast<uint16_t>(a_depth());
  return made;
}

bool MatrixForm::set_shape(std::string_view shape) {
  int m = 0, n = 0, depth = 0;
  if (std::sscanf(std::string(shape).c_str(), "m%dn%dk%d", &m, &n, &depth) != 3) return false;
  rows = static_cast<uint8_t>(m == 64 ? 16 : m);
  tiles = static_cast<uint8_t>(n / 8);
  k = static_cast<uint16_t>(depth);
  return true;
}

namespace {

/// Elements of A behind 16 bits of metadata (8-bit and 4-bit formats: behind 32).
int elements_per_word(const MatrixForm& form) {
  const int bits = format_of(form.a).bits;
  return bits >= 16 ? 128 / bits : bits == 8 ? 16 : 32;
}

}  // namespace

int selectors_of(const MatrixForm& form) {
  const int words = form.a_depth() / elements_per_word(form);
  return format_of(form.a).bits >= 16 ? 4 / words : 2 / words;
}

int metadata_lane(const MatrixForm& form, int row, int at) {
  const int word = at / elements_per_word(form), words = form.a_depth() / elements_per_word(form),
            group = 4 * (row % 8);
  if (format_of(form.a).bits >= 16) return group + form.selector * words + word;
  return group + form.selector * 2 * words + 2 * word + row / 8;
}

int sparse_column(const MatrixForm& form, const uint32_t* metadata, int row, int at) {
  const int bits = format_of(form.a).bits, per_word = elements_per_word(form), word = at / per_word,
            in_word = at % per_word;
  const uint32_t of_lane = metadata[metadata_lane(form, row, at)],
                 given = bits >= 16 ? of_lane >> 16 * (row / 8) & 0xffff : of_lane;
  if (bits == 32)  // four bits to an element, 0b0100 or 0b1110: which half of the pair
    return 8 * word + 2 * in_word + static_cast<int>(given >> (4 * in_word + 3) & 1);
  if (bits == 4) {  // two bits to a pair of neighbours
    const int pair = in_word / 2;
    return 64 * word + 8 * (pair / 2) + 2 * static_cast<int>(given >> 2 * pair & 3) + in_word % 2;
  }
  return 2 * per_word * word + 4 * (in_word / 2) + static_cast<int>(given >> 2 * in_word & 3);
}

FragmentPlace a_place(int rows, int per, int reg, int lane, int i) {
  const int g = lane / 4, t = lane % 4;
  return rows == 8 ? FragmentPlace{g, per * (t + 4 * reg) + i}
                   : FragmentPlace{g + 8 * (reg & 1), per * (t + 4 * (reg >> 1)) + i};
}

FragmentPlace b_place(int per, int reg, int lane, int i) {
  return {per * (lane % 4 + 4 * reg) + i, lane / 4};
}

FragmentPlace sum_place(bool halves, int reg, int lane, int i) {
  const int g = lane / 4, t = lane % 4;
  return halves ? FragmentPlace{g + 8 * reg, 2 * t + i}
                : FragmentPlace{g + 8 * (reg >> 1), 2 * t + (reg & 1)};
}

}  // namespace assay::vm
