// A polynomial by Horner's rule is a chain of steps p y + c with one y: c_n y + c_{n-1} with literals, one of
// which fp32 does not hold, begins it, and another step follows. A step is a fused multiply-add of f32, or a
// product and the addition that takes it.
//
// A number in two parts, C + c with c below C's last place (log2 e in expf, pi / 2 in sinf), is two steps
// with one factor, one the addend of the other.
#include "src/base/vm/literals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "src/base/numerics/format.h"
#include "src/base/vm/by_slot.h"

namespace assay::vm {
namespace {

constexpr int kShortBits = 12;
/// Terms that follow c_n y^n: of e^y, |y| <= 0.35, 0.05 of it from n = 7 on; of log((1 + s) / (1 - s)),
/// s <= 1/3, 0.11; a minimax polynomial leaves less.
constexpr double kLeftOut = 0.125;
constexpr double kLowPart = 0x1p-20;  ///< of the high one, at most

/// factor[0] * factor[1] + addend, the product made by op `product`, the sum by op `sum`; of a product alone
/// no addend.
struct Step {
  size_t product = 0, sum = 0;
  Slot factor[2] = {no_slot, no_slot}, addend = no_slot;
  int before = -1;  ///< the step that made the addend
};

/// Immediates, and registers that one move of an immediate fills, and nothing else.
std::vector<std::pair<Slot, Immediate>> literal_registers(const Code& code) {
  BySlot<const Immediate*> known(code);
  BySlot<int> writers(code);
  std::vector<std::pair<Slot, Immediate>> found;
  const auto add = [&](Slot slot, const Immediate& immediate) {
    if (known[slot]) return;
    known.set(slot, &immediate);
    found.emplace_back(slot, immediate);
  };
  for (const Immediate& immediate : code.immediates) add(immediate.slot, immediate);
  for (const Op& op : code.ops)
    for (const Use& written : code.signature(op).writes) writers.set(written.slot, writers[written.slot] + 1);
  for (const Op& op : code.ops)
    if (op.row && op.row->flow == Flow::copy && op.source_count == 1 && !op.guarded && writers[op.d] == 1)
      if (const Immediate* const from = known[op.s[0]]) add(op.d, *from);
  return found;
}

class Text {
 public:
  explicit Text(const Code& code) : code_(code), bits_(code) {
    for (const auto& [slot, literal] : literal_registers(code))
      if (literal.cell == Cell::word) bits_.set(slot, static_cast<uint32_t>(literal.bits));
    find_steps();
    std::ranges::stable_sort(factors_, {}, &Factor::slot);
  }

  const std::vector<Step>& steps() const { return steps_; }
  Slot result(const Step& step) const { return code_.ops[step.sum].d; }
  bool is_literal(Slot slot) const { return bits_[slot].has_value(); }
  double literal(Slot slot) const { return std::bit_cast<float>(*bits_[slot]); }
  bool holds_inexact(Slot slot) const { return is_literal(slot) && is_inexact(*bits_[slot]); }
  /// visit(step, k): factor k is this register.
  template <class Visit>
  void each_use(Slot slot, Visit visit) const {
    for (const Factor& factor : std::ranges::equal_range(factors_, slot, {}, &Factor::slot))
      visit(steps_[factor.step], factor.k);
  }

 private:
  static bool is_f32(const Op& op, int sources) {
    return op.row && op.row->result == ptx::Type::f32 && op.row->flow == Flow::arithmetic &&
           op.source_count == sources;
  }
  /// In the order of the text: what wrote a register last is what is read.
  void find_steps() {
    BySlot<int> products(code_, -1), made(code_, -1);  // by register: op, step
    const auto add = [&](Step step) {
      step.before = made[step.addend];
      for (const int k : {0, 1}) factors_.push_back({step.factor[k], steps_.size(), k});
      steps_.push_back(step);
    };
    for (size_t i = 0; i < code_.ops.size(); ++i) {
      const Op& op = code_.ops[i];
      const size_t known = steps_.size();
      const ptx::Operation operation = code_.signature(op).form.operation;
      if (is_f32(op, 3)) add({i, i, {op.s[0], op.s[1]}, op.s[2]});
      if (is_f32(op, 2) && operation == ptx::Operation::mul) add({i, i, {op.s[0], op.s[1]}, no_slot});
      if (is_f32(op, 2) && (operation == ptx::Operation::add || operation == ptx::Operation::sub))
        for (const int k : {0, 1})
          if (const int product = products[op.s[k]]; product >= 0) {
            const Op& from = code_.ops[static_cast<size_t>(product)];
            add({static_cast<size_t>(product), i, {from.s[0], from.s[1]}, op.s[1 - k]});
          }
      for (const Use& written : code_.signature(op).writes)
        products.set(written.slot, -1), made.set(written.slot, -1);
      if (is_f32(op, 2) && operation == ptx::Operation::mul) products.set(op.d, static_cast<int>(i));
      if (steps_.size() > known) made.set(op.d, static_cast<int>(known));
    }
  }

  /// Factor k of a step is this register.
  struct Factor {
    Slot slot;
    size_t step;
    int k;
  };
  const Code& code_;
  BySlot<std::optional<uint32_t>> bits_;
  std::vector<Step> steps_;
  std::vector<Factor> factors_;  ///< ascending
};

/// The literal among the factors; -1 where neither or both are.
int literal_factor(const Text& text, const Step& step) {
  const bool first = text.is_literal(step.factor[0]), second = text.is_literal(step.factor[1]);
  return first == second ? -1 : first ? 0 : 1;
}

/// Marks the ops of the polynomials, and where they begin.
void find_series(const Text& text, std::vector<double>& left_out, std::vector<char>& is_member) {
  for (const Step& first : text.steps()) {
    const int k = literal_factor(text, first);
    if (k < 0 || !text.is_literal(first.addend)) continue;
    if (!text.holds_inexact(first.factor[k]) && !text.holds_inexact(first.addend)) continue;
    const Slot y = first.factor[1 - k];
    std::vector<const Step*> chain{&first};
    for (size_t i = 0; i < chain.size() && chain.size() < 64; ++i)
      text.each_use(text.result(*chain[i]), [&](const Step& next, int factor) {
        if (next.factor[1 - factor] == y && text.is_literal(next.addend)) chain.push_back(&next);
      });
    if (chain.size() == 1) continue;
    left_out[first.product] = kLeftOut;
    for (const Step* step : chain) is_member[step->product] = is_member[step->sum] = 1;
  }
}

void find_high_parts(const Code& code, const Text& text, std::vector<int8_t>& exact_source) {
  for (const Step& second : text.steps()) {
    if (second.before < 0) continue;
    const Step& first = text.steps()[static_cast<size_t>(second.before)];
    const int a = literal_factor(text, first), b = literal_factor(text, second);
    if (a < 0 || b < 0 || first.factor[1 - a] != second.factor[1 - b]) continue;
    const double in_first = std::fabs(text.literal(first.factor[a])),
                 in_second = std::fabs(text.literal(second.factor[b]));
    const bool first_is_high = in_second <= kLowPart * in_first;
    if (!first_is_high && !(in_first <= kLowPart * in_second)) continue;
    const Step& high = first_is_high ? first : second;
    const Slot literal = high.factor[first_is_high ? a : b];
    const Op& op = code.ops[high.product];
    for (int8_t k = 0; k < 2; ++k)
      if (op.s[k] == literal) exact_source[high.product] = k;
  }
}

}  // namespace

bool has_more_bits(uint32_t bits, int most) {
  return std::isfinite(std::bit_cast<float>(bits)) && std::countr_zero(bits | 0x800000u) < 24 - most;
}

// Bits that are no number of anybody's formula, as of masks and small integers, lie beyond 2^+-100.
bool is_inexact(uint32_t bits) {
  const float size = std::fabs(std::bit_cast<float>(bits));
  return size > 0x1p-100f && size < 0x1p100f && has_more_bits(bits, kShortBits);
}

namespace {

std::set<Slot> find_shifters(const Code& code) {
  std::set<Slot> found;
  for (const auto& [slot, literal] : literal_registers(code)) {
    if (literal.cell == Cell::mask) continue;
    const bool wide = literal.cell == Cell::wide;
    if (rounds_to_integer(decode(wide ? Dtype::fp64 : Dtype::fp32, literal.bits), wide)) found.insert(slot);
  }
  return found;
}

Literals find_literals(const Code& code) {
  const Text text(code);
  Literals found;
  found.shifters = find_shifters(code);
  found.left_out.resize(code.ops.size());
  found.exact_source.resize(code.ops.size(), -1);
  std::vector<char> is_member(code.ops.size());
  find_series(text, found.left_out, is_member);
  find_high_parts(code, text, found.exact_source);
  if (std::ranges::find(is_member, 1) == is_member.end()) found.left_out.clear();
  BySlot<char> elsewhere(code);
  const auto moves = [&](const Op& op) {
    return op.row && op.row->flow == Flow::copy && op.source_count == 1 && text.is_literal(op.d);
  };
  for (size_t i = 0; i < code.ops.size(); ++i)
    for (const Use& read : code.signature(code.ops[i]).reads)
      if (text.is_literal(read.slot)) {
        if (is_member[i] || moves(code.ops[i]))
          found.of_series.insert(read.slot);
        else
          elsewhere.set(read.slot, 1);
      }
  for (const Op& op : code.ops)  // a literal goes where the register goes that a move fills with it
    if (moves(op) && elsewhere[op.d]) elsewhere.set(op.s[0], 1);
  std::erase_if(found.of_series, [&](Slot slot) { return elsewhere[slot] != 0; });
  return found;
}

}  // namespace

const Literals& literals_of(const Code& code) {
  std::call_once(code.literals.once,
                 [&] { code.literals.made = std::make_shared<const Literals>(find_literals(code)); });
  return *code.literals.made;
}

}  // namespace assay::vm
