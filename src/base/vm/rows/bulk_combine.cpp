#include "src/base/vm/rows/bulk_combine.h"

#include <bit>
#include <cstring>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

using ptx::Combine;
using ptx::Type;

template <class T>
T of_integers(Combine combine, T a, T b) {
  switch (combine) {
    case Combine::add:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    case Combine::min:
      return b < a ? b : a;
    case Combine::max:
      return a < b ? b : a;
    case Combine::and_:
      return a & b;
    case Combine::or_:
      return a | b;
    case Combine::xor_:
      return a ^ b;
    case Combine::inc:
      return a >= b ? 0 : a + 1;
    default:
      return a == 0 || a > b ? b : a - 1;
  }
}

/// As the row of that name computes it, for 32 elements.
template <class T>
void by_row(const char* name, T* to, const T* from, uint32_t count) {
  const Row* const row = find_row(name);
  using Cell = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  for (uint32_t first = 0; first < count; first += 32) {
    Cell a[32] = {}, b[32] = {}, d[32];
    const uint32_t here = count - first < 32 ? count - first : 32;
    for (uint32_t i = 0; i < here; ++i) a[i] = to[first + i], b[i] = from[first + i];
    row->lanes(d, a, b, nullptr, nullptr);
    for (uint32_t i = 0; i < here; ++i) to[first + i] = static_cast<T>(d[i]);
  }
}

template <class T, class F>
void each(std::byte* to, const std::byte* from, uint32_t bytes, F f) {
  for (uint32_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + at, sizeof a), std::memcpy(&b, from + at, sizeof b);
    a = f(a, b);
    std::memcpy(to + at, &a, sizeof a);
  }
}

template <class T>
void integers(Combine combine, std::byte* to, const std::byte* from, uint32_t bytes) {
  each<T>(to, from, bytes, [&](T a, T b) { return of_integers(combine, a, b); });
}

/// As atom.global.add.f64 sums: a NaN passes with sign and payload, of two the second (an H100's bits).
void sum_doubles(std::byte* to, const std::byte* from, uint32_t bytes) {
  each<uint64_t>(to, from, bytes, [](uint64_t a, uint64_t b) {
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b), sum = x + y;
    if (sum == sum) return std::bit_cast<uint64_t>(sum);
    return y != y ? b : x != x ? a : 0xfff8000000000000u;
  });
}

/// Through the machine's own instruction on registers.
template <class T>
void floats(const char* name, std::byte* to, const std::byte* from, uint32_t bytes) {
  each<T>(to, from, bytes, [&](T a, T b) {
    by_row(name, &a, &b, 1);
    return a;
  });
}

}  // namespace

void combine_bytes(Combine combine, Type type, std::byte* to, const std::byte* from, uint32_t bytes) {
  const bool adds = combine == Combine::add, least = combine == Combine::min;
  switch (type) {
    case Type::f16:
      return floats<uint16_t>(adds ? "add.f16" : least ? "min.f16" : "max.f16", to, from, bytes);
    case Type::bf16:
      return floats<uint16_t>(adds ? "add.bf16" : least ? "min.bf16" : "max.bf16", to, from, bytes);
    case Type::f32:
      return floats<uint32_t>("add.f32", to, from, bytes);
    case Type::f64:
      return sum_doubles(to, from, bytes);
    case Type::s32:
      return integers<int32_t>(combine, to, from, bytes);
    case Type::s64:
      return integers<int64_t>(combine, to, from, bytes);
    case Type::u64:
    case Type::b64:
      return integers<uint64_t>(combine, to, from, bytes);
    default:
      return integers<uint32_t>(combine, to, from, bytes);
  }
}

void fill_with_nans(std::byte* to, uint32_t bytes) {
  constexpr uint16_t nan = 0x7ff7;
  for (uint32_t at = 0; at + 2 <= bytes; at += 2) std::memcpy(to + at, &nan, 2);
}

void narrow_to_tf32(std::byte* to, const std::byte* from, uint32_t bytes) {
  each<uint32_t>(to, from, bytes, [](uint32_t, uint32_t x) {
    if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
    return (x + 0xfffu + (x >> 13 & 1)) & ~0x1fffu;
  });
}

bool combines(Combine combine, Type type) {
  switch (combine) {
    case Combine::add:
      return type == Type::u32 || type == Type::s32 || type == Type::u64 || ptx::is_float(type);
    case Combine::min:
    case Combine::max:
      return (ptx::bytes_of(type) >= 4 && !ptx::is_float(type)) || type == Type::f16 || type == Type::bf16;
    case Combine::inc:
    case Combine::dec:
      return type == Type::u32;
    default:
      return type == Type::b32 || type == Type::b64;
  }
}

}  // namespace assay::vm
