// Video instructions (PTX ISA 9.7.17, "Scalar Video Instructions" and "SIMD Video Instructions"): integer
// operations on whole registers, on a byte or half of one, or on all bytes or halves at once; saturated, then
// combined with a third operand or put into a part of it.
#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;
using Wide = __int128;  // a word shifted by 32, a product of two words: no step overflows

enum class Does : uint8_t { add, sub, absdiff, min, max, avrg, set, shl, shr, mad };
enum class Second : uint8_t { none, add, min, max };
enum class Test : uint8_t { eq, ne, lt, le, gt, ge };

/// What one instruction says, as it travels in Op::immediate.
struct Video {
  Does does : 4 = Does::add;
  Second second : 2 = Second::none;
  Test test : 3 = Test::eq;
  bool signed_d : 1 = false, signed_a : 1 = false, signed_b : 1 = false;
  bool saturates : 1 = false;
  bool wraps : 1 = false;                                                         ///< vshl, vshr
  bool plus_one : 1 = false, negates_product : 1 = false, negates_c : 1 = false;  ///< vmad
  uint64_t scale : 4 = 0;                                                         ///< vmad: bits to the right
  uint64_t elements : 3 = 1;                                                      ///< 2, 4: SIMD
  uint64_t mask : 4 = 1;                                                          ///< SIMD: elements made
  uint64_t d : 3 = 0;  ///< scalar: the part of c that the result becomes
  /// Scalar: a part. SIMD: by element, three bits each, which one of the registers b:a it is.
  uint64_t a : 12 = 0, b : 12 = 0;
};
static_assert(sizeof(Video) == 8 && std::is_trivially_copyable_v<Video>);

/// `width` bits from bit `from` on.
struct Part {
  int from = 0, width = 32;
};
constexpr std::string_view kParts[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
Part part_named(uint64_t code) {
  if (code == 0) return {};
  return code < 5 ? Part{8 * static_cast<int>(code - 1), 8} : Part{16 * static_cast<int>(code - 5), 16};
}

Wide part_of(uint64_t registers, Part part, bool is_signed) {
  const uint64_t bits = registers >> part.from & ((uint64_t{1} << part.width) - 1);
  const bool negative = is_signed && bits >> (part.width - 1) & 1;
  return static_cast<Wide>(bits) - (negative ? Wide{1} << part.width : 0);
}

Wide saturated(Wide x, bool is_signed, int width) {
  const Wide least = is_signed ? -(Wide{1} << (width - 1)) : 0,
             most = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
  return std::clamp(x, least, most);
}

bool holds(Test test, Wide a, Wide b) {
  switch (test) {
    case Test::eq:
      return a == b;
    case Test::ne:
      return a != b;
    case Test::lt:
      return a < b;
    case Test::le:
      return a <= b;
    case Test::gt:
      return a > b;
    default:
      return a >= b;
  }
}

Wide made(const Video& v, Wide a, Wide b) {
  switch (v.does) {
    case Does::add:
      return a + b;
    case Does::sub:
      return a - b;
    case Does::absdiff:
      return a < b ? b - a : a - b;
    case Does::min:
      return std::min(a, b);
    case Does::max:
      return std::max(a, b);
    case Does::avrg:
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Does::set:
      return holds(v.test, a, b) ? 1 : 0;
    case Does::shl:
    case Does::shr: {
      const int by = static_cast<int>(v.wraps ? b & 31 : std::min<Wide>(b, 32));
      return v.does == Does::shl ? a << by : a >> by;
    }
    default:
      return 0;  // vmad: multiplied()
  }
}

uint32_t scalar(const Video& v, uint32_t a, uint32_t b, uint32_t c) {
  const Part to = part_named(v.d);
  Wide t = made(v, part_of(a, part_named(v.a), v.signed_a), part_of(b, part_named(v.b), v.signed_b));
  if (v.saturates) t = saturated(t, v.signed_d, to.width);
  const Wide third = part_of(c, {}, v.signed_d);
  if (v.second == Second::add) t += third;
  if (v.second == Second::min) t = std::min(t, third);
  if (v.second == Second::max) t = std::max(t, third);
  if (to.width == 32) return static_cast<uint32_t>(t);
  const uint32_t taken = ((uint32_t{1} << to.width) - 1) << to.from;
  return (static_cast<uint32_t>(t) << to.from & taken) | (c & ~taken);
}

/// vmad: the product is negated by its complement and one more.
uint32_t multiplied(const Video& v, uint32_t a, uint32_t b, uint32_t c) {
  const bool is_signed = v.signed_a || v.signed_b || v.negates_product || v.negates_c;
  Wide t = part_of(a, part_named(v.a), v.signed_a) * part_of(b, part_named(v.b), v.signed_b);
  const bool signed_c = v.signed_a || v.signed_b || v.negates_product;
  const Wide third = part_of(c, {}, signed_c);
  t = (v.negates_product ? -t : t) + (v.negates_c ? -third : third) + (v.plus_one ? 1 : 0);
  t >>= v.scale;
  return static_cast<uint32_t>(v.saturates ? saturated(t, is_signed, 32) : t);
}

uint32_t parallel(const Video& v, uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t both = uint64_t{b} << 32 | a;
  const int count = static_cast<int>(v.elements), width = 32 / count;
  const uint32_t ones = (uint32_t{1} << width) - 1;
  uint32_t result = c;
  const auto element = [&](uint64_t chosen, int i, bool is_signed) {
    return part_of(both, {static_cast<int>(chosen >> 3 * i & 7) * width, width}, is_signed);
  };
  for (int i = 0; i < count; ++i) {
    if (!(v.mask >> i & 1)) continue;
    Wide t = made(v, element(v.a, i, v.signed_a), element(v.b, i, v.signed_b));
    if (v.saturates) t = saturated(t, v.signed_d, width);
    const auto word = static_cast<uint32_t>(t);
    if (v.second == Second::add)
      result += word;
    else
      result = (result & ~(ones << width * i)) | (word & ones) << width * i;
  }
  return result;
}

bool video(Warp& warp, const Op& op, uint32_t mask) {
  const auto v = std::bit_cast<Video>(op.immediate);
  const auto apply = v.elements > 1 ? parallel : v.does == Does::mad ? multiplied : scalar;
  const uint32_t *const a = warp.word(op.s[0]), *const b = warp.word(op.s[1]),
                        *const c = op.s[2] == no_slot ? nullptr : warp.word(op.s[2]);
  uint32_t* const d = warp.word(op.d);
  each_lane(mask, [&](int lane) { d[lane] = apply(v, a[lane], b[lane], c ? c[lane] : 0); });
  return true;
}

/// Whether one of the words stands among those of the opcode.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}
  bool has(std::string_view word) const {
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }
  template <class E, size_t n>
  E chosen(const std::string_view (&names)[n], E otherwise) const {
    for (size_t i = 0; i < n; ++i)
      if (has(names[i])) return static_cast<E>(i);
    return otherwise;
  }
  const std::string& operator[](size_t i) const { return words_[i]; }

 private:
  std::vector<std::string> words_;
};

[[noreturn]] void no_part(Decoder& decoder, const ptx::Instruction& instruction, const std::string& part) {
  decoder.fail(instruction, "has no part ." + part);
}

/// ".b1", ".h0" of an operand; 0: the whole.
uint64_t scalar_part(Decoder& decoder, const ptx::Instruction& instruction, const std::string& part) {
  const auto* const found = std::find(std::begin(kParts), std::end(kParts), part);
  if (found == std::end(kParts)) no_part(decoder, instruction, part);
  return static_cast<uint64_t>(found - kParts);
}

/// ".b7654", ".h32": the last digit is element 0's. `first`: the element that 0 has by default.
uint64_t selected(Decoder& decoder, const ptx::Instruction& instruction, const std::string& part,
                  size_t count, uint64_t first) {
  uint64_t chosen = 0;
  for (size_t i = 0; i < count; ++i) chosen |= (first + i) << 3 * i;
  if (part.empty()) return chosen;
  chosen = 0;
  if (part.size() != count + 1 || part[0] != (count == 2 ? 'h' : 'b')) no_part(decoder, instruction, part);
  for (size_t i = 0; i < count; ++i) {
    const char digit = part[count - i];
    if (digit < '0' || digit >= static_cast<char>('0' + 2 * count)) no_part(decoder, instruction, part);
    chosen |= static_cast<uint64_t>(digit - '0') << 3 * i;
  }
  return chosen;
}

/// ".b310", ".h1": the elements that are made, in falling order.
uint64_t made_elements(Decoder& decoder, const ptx::Instruction& instruction, const std::string& part,
                       size_t count) {
  if (part.empty()) return (1u << count) - 1;
  if (part.size() < 2 || part[0] != (count == 2 ? 'h' : 'b')) no_part(decoder, instruction, part);
  uint64_t mask = 0;
  for (size_t i = 1; i < part.size(); ++i) {
    if (part[i] < '0' || part[i] >= static_cast<char>('0' + count) || (i > 1 && part[i] >= part[i - 1]))
      no_part(decoder, instruction, part);
    mask |= uint64_t{1} << (part[i] - '0');
  }
  return mask;
}

/// vset: of its sources' types; its result is 0 or 1.
void read_types(const Words& words, Video& v) {
  const size_t first = v.does == Does::set ? 1 : 2;
  v.signed_d = v.does != Does::set && words[1] == "s32";
  v.signed_a = words[first] == "s32", v.signed_b = words[first + 1] == "s32";
  if (v.does == Does::shl || v.does == Does::shr) v.signed_b = false;
}

/// Signs before operands, which only vmad has.
void read_signs(Decoder& decoder, const ptx::Instruction& instruction, std::vector<Operand>& operands,
                Video& v) {
  for (const Operand& operand : operands)
    if (operand.negated && v.does != Does::mad) decoder.fail(instruction, "negates none of its operands");
  if (v.does != Does::mad) return;
  v.negates_product = operands[1].negated != operands[2].negated, v.negates_c = operands[3].negated;
  const bool any = operands[1].negated || operands[2].negated || v.negates_c;
  if ((v.plus_one && any) || (v.negates_product && v.negates_c))
    decoder.fail(instruction, "negates its product or its sum, and with .po neither");
}

void decode_video(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  static constexpr std::string_view does[] = {"vadd",  "vsub", "vabsdiff", "vmin", "vmax",
                                              "vavrg", "vset", "vshl",     "vshr", "vmad"},
                                    seconds[] = {"none", "add", "min", "max"},
                                    tests[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  const Words words(decoder.parts(instruction));
  std::string name = words[0];
  Video v;
  if (name.back() == '2' || name.back() == '4') v.elements = name.back() == '2' ? 2 : 4, name.pop_back();
  v.does = static_cast<Does>(std::find(std::begin(does), std::end(does), name) - does);
  v.second = words.chosen(seconds, Second::none), v.test = words.chosen(tests, Test::eq);
  v.saturates = words.has("sat"), v.wraps = words.has("wrap"), v.plus_one = words.has("po");
  v.scale = words.has("shr7") ? 7 : words.has("shr15") ? 15 : 0;
  read_types(words, v);
  std::vector<Operand> operands = instruction.operands;
  const size_t count = operands.size();
  const bool merges =
      !operands.empty() && !operands[0].name.empty() && operands[0].kind == Operand::Kind::reg;
  const bool third = v.elements > 1 || v.does == Does::mad || v.second != Second::none || merges;
  decoder.expect_operands(instruction, third ? 4 : 3, third ? 4 : 3);
  read_signs(decoder, instruction, operands, v);
  const auto part = [&](size_t i) {
    const bool is_register = operands[i].kind == Operand::Kind::reg;
    operands[i].negated = false;
    return is_register ? std::exchange(operands[i].name, "") : std::string();
  };
  if (v.elements > 1) {
    const auto elements = static_cast<size_t>(v.elements);
    v.mask = made_elements(decoder, instruction, part(0), elements);
    v.a = selected(decoder, instruction, part(1), elements, 0);
    v.b = selected(decoder, instruction, part(2), elements, elements);
  } else {
    if (merges && (v.second != Second::none || v.does == Does::mad))
      decoder.fail(instruction, "puts its result into no part of a register");
    v.d = scalar_part(decoder, instruction, part(0));
    v.a = scalar_part(decoder, instruction, part(1)), v.b = scalar_part(decoder, instruction, part(2));
  }
  if (third) operands[3].negated = false;
  op.d = decoder.destination(operands[0], Type::b32);
  for (size_t i = 1; i < count; ++i) op.s[i - 1] = decoder.source(operands[i], Type::b32);
  op.source_count = static_cast<uint8_t>(count - 1);
  op.d_cell = Cell::word;
  op.immediate = std::bit_cast<uint64_t>(v);
}

}  // namespace

void add_video_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& pattern, Status status = Status::exact()) {
    add_warp_row(rows, pattern,
                 {.flow = Flow::integer,
                  .status = status,
                  .result = Type::b32,
                  .sources = {Type::b32, Type::b32, Type::b32},
                  .operands = {Role::write, Role::read}},
                 video, decode_video);
  };
  const std::string types = ".{u32,s32}.{u32,s32}", tests = ".{eq,ne,lt,le,gt,ge}";
  const Status as_specified = Status::measured_on(0);  // on none
  // As the specification says; of what ptxas 13.0 makes of those of one element an H100 gave other bits in
  // 174 of 640 forms, most of which saturate or combine with a third operand.
  add("{vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}" + types + "{,.sat}{,.add,.min,.max}", as_specified);
  add("{vshl,vshr}" + types + ".u32{,.sat}.{clamp,wrap}{,.add,.min,.max}", as_specified);
  add("vset" + types + tests + "{,.add,.min,.max}", as_specified);
  add("vmad.{u32,s32}" + types + "{,.po}{,.sat}{,.shr7,.shr15}", as_specified);
  add("{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2,vadd4,vsub4,vavrg4,vmin4,vmax4}.{u32,s32}" + types +
      "{,.sat,.add}");
  // Of unsigned bytes: lane rows (packed_integer.cpp).
  add("vabsdiff4.{u32.u32.s32,u32.s32.u32,u32.s32.s32,s32.u32.u32,s32.u32.s32,s32.s32.u32,s32.s32.s32}"
      "{,.sat,.add}");
  add("vabsdiff4.u32.u32.u32.sat");
  add("{vset2,vset4}" + types + tests + "{,.add}");
}

}  // namespace assay::vm
