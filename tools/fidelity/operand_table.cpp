#include "tools/fidelity/operand_table.h"

#include <vector>

#include "src/base/ptx/type.h"

namespace assay::fidelity {
namespace {

using ptx::Type;

/// Layout of a float type; bits == 0 for integers. Packed types have the layout of their halves.
struct Layout {
  int bits, fraction, bias;
};

Layout layout_of(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return {16, 10, 15};
    case Type::bf16:
    case Type::bf16x2:
      return {16, 7, 127};
    case Type::f32:
    case Type::tf32:
      return {32, 23, 127};
    case Type::f64:
      return {64, 52, 1023};
    default:
      return {0, 0, 0};
  }
}

uint64_t ones(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

/// Builds templates of one float layout.
class FloatTemplates {
 public:
  explicit FloatTemplates(const Layout& layout) : l_(layout) {}

  void exactly(uint64_t magnitude) {
    made.push_back({0, magnitude});
    made.push_back({0, magnitude | sign()});
  }
  /// Exponents from 2^low to 2^(low + 2^spread - 1), any sign; `tail` low fraction bits fixed to a single one
  /// on top (a tie for a format that much shorter), or `head` leading fraction bits only.
  void window(int low, int spread, int head = -1, int tail = 0) {
    const int field = low + l_.bias;
    const int largest = static_cast<int>(ones(l_.bits - 1 - l_.fraction));
    const int clamped = field < 0 ? 0 : field > largest - 1 ? largest - 1 : field;
    const auto aligned = static_cast<uint64_t>(clamped) & ~ones(spread);
    uint64_t fraction = ones(l_.fraction);
    // A head longer than the format's fraction draws powers of two: the recorded digests rest on it.
    if (head > l_.fraction) fraction = 0;
    if (head >= 0 && head <= l_.fraction) fraction &= ~ones(l_.fraction - head);
    if (tail > 0 && tail < l_.fraction) fraction &= ~ones(tail);
    const uint64_t tie = tail > 0 && tail < l_.fraction ? uint64_t{1} << (tail - 1) : 0;
    made.push_back({sign() | (ones(spread) << l_.fraction) | fraction, (aligned << l_.fraction) | tie});
  }
  void raw() { made.push_back({ones(l_.bits), 0}); }
  uint64_t sign() const { return uint64_t{1} << (l_.bits - 1); }
  uint64_t one() const { return static_cast<uint64_t>(l_.bias) << l_.fraction; }
  uint64_t infinity() const { return ones(l_.bits - 1 - l_.fraction) << l_.fraction; }
  uint64_t least_normal() const { return uint64_t{1} << l_.fraction; }
  const Layout& layout() const { return l_; }

  std::vector<Template> made;

 private:
  Layout l_;
};

std::vector<Template> float_entries(const Layout& layout) {
  FloatTemplates t(layout);
  const uint64_t one = t.one(), infinity = t.infinity(), normal = t.least_normal();
  for (const uint64_t magnitude :
       {uint64_t{0}, uint64_t{1}, normal - 1, normal, normal + 1, one, one + 1, one - 1, infinity - 1,
        infinity, infinity | 1, infinity | (normal >> 1), infinity | (normal - 1)})
    t.exactly(magnitude);
  const int least = 1 - layout.bias;
  for (int i = 0; i < 3; ++i) {
    t.window(least - 1, 0);  // subnormals
    t.window(least, 3);
    t.window(layout.bias - 7, 3);
    t.window(-4, 3);
    t.window(-2, 2, 3);
    t.window(0, 1, 1);
  }
  t.window(-16, 5);
  t.window(0, 4, -1, layout.fraction - 10);  // ties for f16 and integers
  t.window(0, 4, -1, layout.fraction - 7);   // ties for bf16
  t.window(-26, 4, -1, 13);
  t.window(12, 3);
  t.window(28, 3);
  t.window(60, 3);
  t.window(-24, 4);
  t.window(layout.bias / 2 - 2, 3);
  t.window(-layout.bias / 2 - 4, 3);
  t.window(0, 5, 5);
  t.window(20, 5, 10);
  t.made.push_back({t.sign() | ones(layout.fraction), infinity | 1});  // NaN with any payload
  // Products just below the smallest normal number.
  t.made.push_back({t.sign() | 7, one - 8});
  t.made.push_back({t.sign() | 7, normal});
  while (t.made.size() < table_entries) t.raw();
  return t.made;
}

std::vector<Template> integer_entries(int bits) {
  std::vector<Template> made;
  const uint64_t all = ones(bits), top = uint64_t{1} << (bits - 1);
  for (const uint64_t value : {uint64_t{0},
                               uint64_t{1},
                               uint64_t{2},
                               uint64_t{3},
                               all,
                               all - 1,
                               top,
                               top - 1,
                               top + 1,
                               uint64_t{0x7f},
                               uint64_t{0x80},
                               uint64_t{0xff},
                               uint64_t{0x100},
                               uint64_t{0x7fff},
                               uint64_t{0x8000},
                               uint64_t{0xffff},
                               uint64_t{31},
                               uint64_t{32},
                               uint64_t{33},
                               uint64_t{63},
                               uint64_t{64},
                               uint64_t{65},
                               all ^ 0x7f,
                               all ^ 0x7fff})
    made.push_back({0, value & all});
  if (bits == 64)
    for (const uint64_t value : {0x7fffffffull, 0x80000000ull, 0xffffffffull, 0xffffffff80000000ull})
      made.push_back({0, value});
  for (int i = 0; i < 6; ++i) made.push_back({0x1f, 0});
  for (int i = 0; i < 3; ++i) made.push_back({0x3f, 0});
  for (int i = 0; i < 3; ++i) made.push_back({ones(bits / 2), 0});
  made.push_back({0xff, 0});
  made.push_back({0x3f, all ^ 0x3f});
  made.push_back({all ^ ones(bits / 2), 0});
  made.push_back({top | ones(bits / 2), 0});
  made.push_back({all ^ 0xff, 0x80 & all});  // ties where a conversion drops eight bits
  while (made.size() < table_entries) made.push_back({all, 0});
  return made;
}

/// Entries of both halves; the high half walks the table with another step.
OperandTable packed(const std::vector<Template>& half, int step) {
  OperandTable made;
  for (int i = 0; i < table_entries; ++i) {
    const Template& low = half[static_cast<size_t>(i)];
    const Template& high = half[static_cast<size_t>((i * step + (step > 1 ? 3 : 0)) % table_entries)];
    made[static_cast<size_t>(i)] = {high.keep << 16 | low.keep, high.set << 16 | low.set};
  }
  return made;
}

OperandTable table_of(const std::vector<Template>& entries) {
  OperandTable made;
  for (size_t i = 0; i < made.size(); ++i) made[i] = entries[i];
  return made;
}

}  // namespace

OperandTable crossed_table(Type type) {
  const Layout layout = layout_of(type);
  if (layout.bits == 0) return table_of(integer_entries(type == Type::pred ? 32 : 8 * ptx::bytes_of(type)));
  const std::vector<Template> entries = float_entries(layout);
  return is_packed(type) ? packed(entries, 7) : table_of(entries);
}

namespace {

std::vector<Template> themes(const Layout& layout) {
  FloatTemplates t(layout);
  const int least = 1 - layout.bias, half = layout.bias / 2;
  const auto four = [&](auto&& add) {
    for (int i = 0; i < 4; ++i) add(i);
  };
  four([&](int) { t.window(-1, 0); });
  four([&](int i) { t.window(-8 + 8 * i, 1); });
  four([&](int) { t.window(-4, 3); });
  four([&](int) { t.window(0, 1, 1); });  // sums of few powers: cancellation and ties
  four([&](int) { t.window(-12, 4); });
  four([&](int i) { i == 0 ? t.window(12, 0) : t.window(-12 + 2 * i, 1); });  // one leader, the rest below F
  four([&](int) { t.window(least - 1, 0); });                                 // subnormal operands
  four([&](int i) { t.window(i < 2 ? -half - 6 : -half + 2, 2); });           // products near the floor
  four([&](int) { t.window(half - 1, 2); });                                  // products near overflow
  four([&](int i) { t.window(i == 0 ? layout.bias - 1 : least, 1); });
  four([&](int i) { i < 2 ? t.exactly(0) : t.window(-2, 2); });
  four([&](int i) { i == 0 ? t.made.push_back({t.sign(), t.infinity()}) : t.window(-2, 2); });
  four([&](int i) { i == 0 ? t.made.push_back({t.sign() | 1, t.infinity() | 2}) : t.window(-2, 2); });
  four([&](int i) { t.window(0, 0, i); });
  four([&](int i) { i % 2 ? t.made.push_back({t.sign(), t.one()}) : t.window(-24, 3); });
  while (t.made.size() < table_entries) t.raw();
  t.made.resize(table_entries);
  return t.made;
}

}  // namespace

OperandTable theme_table(Type type) {
  const std::vector<Template> entries = themes(layout_of(type));
  return is_packed(type) ? packed(entries, 1) : table_of(entries);
}

OperandTable theme_table(vm::Element element) {
  const vm::ElementFormat& f = vm::format_of(element);
  OperandTable made = table_of(themes({f.bits, f.fraction_bits, (1 << (f.exponent_bits - 1)) - 1}));
  for (Template& entry : made) entry.keep *= 0x01010101u, entry.set *= 0x01010101u;
  return made;
}

}  // namespace assay::fidelity
