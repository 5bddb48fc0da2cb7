#include "src/campaign/mutate/terms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "src/base/numerics/fnv.h"
#include "src/base/vm/cell_memory.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/traced_launch.h"
#include "src/base/vm/transfer.h"

namespace assay {
namespace {

using vm::Cell;
using vm::Flow;
using vm::Op;
using vm::Slot;
using vm::Warp;

/// Of two bytes of a register or of memory: 0 where their bits follow from sizes alone. The low two bits say
/// what is known of the value.
using Term = uint64_t;
constexpr Term kBits = 0, kUntouched = 1;
constexpr Term kIsCanonical = 1;  ///< a sum or product of fp32: of NaN it has but one
constexpr Term kIsNotMinusZero = 2;
/// From one half of a value to the next.
constexpr Term kNextHalf = 4 * 0x27d4eb2f165667c5u;

Term joined_hash(Term a, Term b) {
  uint64_t x = (a ^ std::rotl(b, 29)) * 0x9e3779b97f4a7c15u + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Term term(uint64_t hash, Term known = 0) {
  return (hash >> 2 == 0 ? 4 : hash & ~Term{3}) | known;
}
Term unwritten(ptx::Space space, uint64_t lane, uint64_t half) {
  return term(joined_hash(joined_hash(0x756e7772, static_cast<uint64_t>(space)), joined_hash(lane, half)));
}

struct Value {
  Term of = kBits;
  uint64_t bits = 0;  ///< where `of` is kBits
  bool is_bits() const { return of == kBits; }
  Term hash() const { return is_bits() ? joined_hash(0x62697473, bits) : of; }
  bool operator==(const Value&) const = default;
};

bool is_zero(const Value& x) {
  return x.is_bits() && (x.bits & 0x7fffffff) == 0;
}
bool is_finite(const Value& x) {
  return x.is_bits() && (x.bits & 0x7f800000) != 0x7f800000;
}
bool is_never_minus_zero(const Value& x) {
  return x.is_bits() ? x.bits != 0x80000000 : (x.of & kIsNotMinusZero) != 0;
}

/// x + 0, or x + -0, rounded to nearest.
Value plus_zero(const Value& x, bool negative) {
  if ((x.of & kIsCanonical) && (negative || (x.of & kIsNotMinusZero))) return x;
  return {term(joined_hash(joined_hash(0x2b30, negative), x.of),
               kIsCanonical | (negative ? 0 : kIsNotMinusZero))};
}

/// Buffers: what each begins as, and what stands there.
struct BufferNote {
  Term begins = 0;       ///< mixed with the half's number
  bool is_bits = false;  ///< what the plan brings
};
using Buffers = vm::GlobalCells<vm::CellArray<Term>, BufferNote>;

constexpr uint32_t kHalf = 2;

class TermTrace : public vm::PlainTrace {
 public:
  static constexpr unsigned hooks =
      vm::hook::begin_block | vm::hook::guarded | vm::hook::before | vm::hook::after | vm::hook::landed;
  explicit TermTrace(Buffers& buffers) : buffers_(buffers) {}
  std::string lost;

  void begin_block(vm::Block& block) {
    cells_.begin(block, unwritten({}, 0, 0), kBits);
    cells_.begin_local(block, kUntouched);
    cells_.begin_shared(block, kUntouched);
  }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    if (any(active, [&](int lane) { return cell(warp, op.guard, 0, lane) != kBits; })) lose("a guard");
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    if (!lost.empty()) return;
    staged_.clear();
    const vm::Signature& s = signature_of(warp, op);
    for (const vm::Use& use : s.reads)
      if (use.purpose != vm::Purpose::value && use.purpose != vm::Purpose::guard &&
          has_terms(warp, use, mask))
        return lose("an address");
    using enum Flow;
    const Flow flow = s.flow();
    if (flow == select) return choose(warp, op, s, mask);
    for (size_t i = 1; flow == exchange && i < s.reads.size(); ++i)
      if (has_terms(warp, s.reads[i], mask)) return lose("a lane");
    if (vm::carries(s)) return;
    if (flow == matrix) return multiply(warp, op, s, mask);
    if (flow == atomic) return lose("an atomic");
    if (!s.writes.empty() && s.meaning->asynchronous.step == vm::Step::none && reads_memory(s))
      return lose("what is read in memory");
    if (!has_terms(warp, s, mask)) return;
    const bool computes = s.control == vm::Control::none && !s.form.carry_in && !s.form.carry_out &&
                          vm::is_one_of(flow, copy, logic, shift, permute, integer, arithmetic, conversion,
                                        comparison, address);
    if (!computes) return lose("what lanes tell each other");
    vm::each_lane(mask, [&](int lane) { compute(warp, op, s, lane); });
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (!lost.empty()) return;
    const vm::Signature& s = signature_of(warp, op);
    if (vm::carries(s) && s.flow() != Flow::select) return carry(warp, op, s, mask);
    for (const vm::Use& use : s.writes) clear(warp, use, mask);
    for (const Staged& made : staged_) cell(warp, made.slot, made.half, made.lane) = made.term;
  }
  void landed(Warp& warp, const vm::Landing& landing) {
    if (!lost.empty()) return;
    if (landing.combines) return lose("a copy that adds");
    vm::each_lane(landing.mask, [&](int piece) {
      const vm::BytePlace to{vm::no_slot, landing.to_space, piece, landing.to[piece]};
      for (uint32_t byte = landing.copied[piece]; byte < landing.bytes; byte += kHalf)
        write(warp, to, byte / kHalf, kBits);
    });
    each_transfer(landing, [&](const vm::Transfer& t) {
      for (uint32_t half = 0; kHalf * half < t.bytes; ++half)
        write(warp, t.to, half, read(warp, t.from, half));
    });
  }

 private:
  struct Staged {
    Slot slot;
    int half, lane;
    Term term;
  };

  void lose(const char* why) {
    if (lost.empty()) lost = why;
  }
  template <class Test>
  static bool any(uint32_t mask, const Test& test) {
    bool found = false;
    vm::each_lane(mask, [&](int lane) { found |= test(lane); });
    return found;
  }
  static const vm::Signature& signature_of(const Warp& warp, const Op& op) {
    return warp.block->context->code->signature(op);
  }
  static int halves_of(Cell kind) { return kind == Cell::wide ? 4 : kind == Cell::word ? 2 : 1; }
  /// Of a narrower value than its register the others are not read.
  static int halves_of(const vm::Use& use) {
    const int bytes = use.type == ptx::Type::none ? 8 : ptx::bytes_of(use.type);
    return std::clamp((bytes + 1) / 2, 1, halves_of(use.cell));
  }

  Term& cell(const Warp& warp, Slot slot, int half, int lane) {
    return cells_.registers(warp)[cells_.cell(slot, half, lane)];
  }
  static bool reads_memory(const vm::Signature& s) {
    return std::any_of(s.accesses.begin(), s.accesses.end(), [](const vm::Access& access) {
      return access.direction != vm::Access::Direction::write;
    });
  }
  bool has_terms(const Warp& warp, const vm::Use& use, uint32_t mask) {
    return any(mask, [&](int lane) {
      for (int half = 0; half < halves_of(use); ++half)
        if (cell(warp, use.slot, half, lane) != kBits) return true;
      return false;
    });
  }
  bool has_terms(const Warp& warp, const vm::Signature& s, uint32_t mask) {
    return std::any_of(s.reads.begin(), s.reads.end(), [&](const vm::Use& use) {
      return use.purpose != vm::Purpose::guard && has_terms(warp, use, mask);
    });
  }
  void clear(const Warp& warp, const vm::Use& use, uint32_t mask) {
    vm::each_lane(mask, [&](int lane) {
      for (int half = 0; half < halves_of(use.cell); ++half) cell(warp, use.slot, half, lane) = kBits;
    });
  }
  void stage(Slot slot, Cell kind, int lane, Term whole) {
    for (int half = 0; half < halves_of(kind); ++half)
      staged_.push_back({slot, half, lane, whole + static_cast<Term>(half) * kNextHalf});
  }

  static uint64_t bits_of(const Warp& warp, Slot slot, Cell kind, int lane) {
    return kind == Cell::wide   ? warp.wide(slot)[lane]
           : kind == Cell::mask ? warp.mask(slot) >> lane & 1
                                : warp.word(slot)[lane];
  }
  Value value(const Warp& warp, Slot slot, Cell kind, int count, int lane) {
    const uint64_t bits = bits_of(warp, slot, kind, lane);
    const Term first = cell(warp, slot, 0, lane);
    bool is_one = first != kBits, is_bits = true;
    uint64_t parts = 0;
    for (int half = 0; half < count; ++half) {
      const Term each = cell(warp, slot, half, lane);
      is_bits &= each == kBits;
      is_one &= each == first + static_cast<Term>(half) * kNextHalf;
      parts = joined_hash(parts, each == kBits ? bits >> (16 * half) & 0xffff : each);
    }
    if (is_bits) return {kBits, count < 4 ? bits & ((uint64_t{1} << 16 * count) - 1) : bits};
    return {is_one ? first : term(parts)};
  }
  Value value(const Warp& warp, const vm::Use& use, int lane) {
    return value(warp, use.slot, use.cell, halves_of(use), lane);
  }

  /// All that the operation does, and not on what.
  static uint64_t identity(const Warp& warp, const Op& op) {
    const vm::Code& code = *warp.block->context->code;
    uint64_t made = fnv1a(vm::opcode_of(code, op));
    for (const uint64_t part : {std::bit_cast<uint64_t>(op.row), std::bit_cast<uint64_t>(op.lanes),
                                op.immediate, static_cast<uint64_t>(op.boolean),
                                static_cast<uint64_t>(op.third_negated), static_cast<uint64_t>(op.type)})
      made = joined_hash(made, part);
    return made;
  }

  void compute(const Warp& warp, const Op& op, const vm::Signature& s, int lane) {
    std::vector<Value>& x = values_;
    x.clear();
    bool all_bits = true;
    for (const vm::Use& use : s.reads) {
      if (use.purpose == vm::Purpose::guard) continue;
      x.push_back(value(warp, use, lane));
      all_bits &= x.back().is_bits();
    }
    if (all_bits) return;
    if (const auto sum = of_floats(s, x)) {
      if (!sum->is_bits()) stage(op.d, op.d_cell, lane, sum->of);
      return;
    }
    uint64_t made = identity(warp, op);
    for (const Value& each : x) made = joined_hash(made, each.hash());
    for (size_t i = 0; i < s.writes.size(); ++i)
      stage(s.writes[i].slot, s.writes[i].cell, lane, term(joined_hash(made, i)));
  }

  /// Sums and products of fp32, rounded to nearest; nothing of what else there is.
  static std::optional<Value> of_floats(const vm::Signature& s, const std::vector<Value>& x) {
    const ptx::Form& form = s.form;
    using enum ptx::Operation;
    const bool sums = vm::is_one_of(form.operation, add, sub) && x.size() == 2,
               fuses = form.operation == fma && x.size() == 3,
               plain = form.type() == ptx::Type::f32 && form.rounding == ptx::Rounding::rn && !form.ftz &&
                       !form.saturates && !form.relu && !form.packed;
    if (!plain || s.flow() != Flow::arithmetic || !(sums || fuses)) return std::nullopt;
    if (fuses) {
      const bool nothing = (is_zero(x[0]) && is_finite(x[1])) || (is_zero(x[1]) && is_finite(x[0]));
      if (nothing) return plus_zero(x[2], ((x[0].bits ^ x[1].bits) >> 31 & 1) != 0);
      return Value{
          term(joined_hash(joined_hash(0x666d61, x[0].hash()), joined_hash(x[1].hash(), x[2].hash())),
               kIsCanonical)};
    }
    const bool subtracts = form.operation == sub;
    if (is_zero(x[1])) return plus_zero(x[0], (x[1].bits >> 31 & 1) != static_cast<uint64_t>(subtracts));
    if (is_zero(x[0]) && !subtracts) return plus_zero(x[1], (x[0].bits >> 31 & 1) != 0);
    const bool never = is_never_minus_zero(x[0]) || (!subtracts && is_never_minus_zero(x[1]));
    return Value{term(joined_hash(joined_hash(subtracts ? 0x737562 : 0x616464, x[0].hash()), x[1].hash()),
                      kIsCanonical | (never ? kIsNotMinusZero : 0))};
  }

  void choose(const Warp& warp, const Op& op, const vm::Signature& s, uint32_t mask) {
    vm::each_lane(mask, [&](int lane) {
      const Value by = value(warp, s.reads[2], lane);
      if (s.reads[2].cell != Cell::mask || !by.is_bits()) return compute(warp, op, s, lane);
      const Slot chosen = op.s[by.bits ? 0 : 1];
      for (int half = 0; half < halves_of(op.d_cell); ++half)
        staged_.push_back({op.d, half, lane, cell(warp, chosen, half, lane)});
    });
  }

  /// Elements of an operand of a tensor core that is a float of 16 or 32 bits.
  struct Factor {
    Value x;
    bool zero = false, finite = false;
  };
  Value element(const Warp& warp, const Op& op, const vm::ElementPlace& at, int bits) {
    const Slot slot = op.slots[at.slot];
    if (bits == 32) return value(warp, slot, Cell::word, 2, at.lane);
    const Term of = cell(warp, slot, at.bit / 16, at.lane);
    return {of, of == kBits ? warp.word(slot)[at.lane] >> at.bit & 0xffff : 0};
  }
  Factor factor(const Warp& warp, const Op& op, const vm::ElementPlace& at, const vm::ElementFormat& format) {
    Factor made{element(warp, op, at, format.bits)};
    if (!made.x.is_bits()) return made;
    const uint64_t kept = made.x.bits >> format.dropped_bits,
                   exponents = (uint64_t{1} << format.exponent_bits) - 1;
    made.zero =
        (kept & ((exponents << format.fraction_bits) | ((uint64_t{1} << format.fraction_bits) - 1))) == 0;
    made.finite = (kept >> format.fraction_bits & exponents) != exponents;
    return made;
  }

  void multiply(const Warp& warp, const Op& op, const vm::Signature& s, uint32_t mask) {
    const vm::MatrixForm& form = s.matrix;
    if (form.warpgroup) return lose("a product of another kind");  // of what lies in shared memory
    if (!has_terms(warp, s, mask)) return;
    const vm::ElementFormat &fa = vm::format_of(form.a), &fb = vm::format_of(form.b),
                            &sums = vm::format_of(form.sum);
    const auto is_float = [](const vm::ElementFormat& f) {
      return !f.integer && (f.bits == 16 || f.bits == 32);
    };
    if (form.sparse || !is_float(fa) || !is_float(fb) || !is_float(sums))
      return lose("a product of another kind");
    const vm::MatrixElements elements(warp, op);
    std::vector<Factor> b;
    for (int n = 0; n < form.columns(); ++n)
      for (int k = 0; k < form.k; ++k) b.push_back(factor(warp, op, elements.b(k, n), fb));
    for (int row = 0; row < form.rows; ++row) {
      std::vector<Factor> a;
      for (int k = 0; k < form.k; ++k) a.push_back(factor(warp, op, elements.a(row, k), fa));
      for (int n = 0; n < form.columns(); ++n) {
        const Value c = element(warp, op, elements.c(row, n), sums.bits);
        const vm::ElementPlace to = elements.d(row, n);
        const Term made = sum_of(form, c, a.data(), b.data() + static_cast<ptrdiff_t>(n) * form.k);
        if (made == kBits) continue;
        if (sums.bits == 32)
          stage(op.slots[to.slot], Cell::word, to.lane, made);
        else
          staged_.push_back({op.slots[to.slot], to.bit / 16, to.lane, made});
      }
    }
  }
  /// Of one element; products of a zero with a finite literal take no part in it.
  static Term sum_of(const vm::MatrixForm& form, const Value& c, const Factor* a, const Factor* b) {
    const bool wide = form.sum == vm::Element::f32;
    uint64_t made = joined_hash(joined_hash(0x6d6d61, form.bits()), c.hash());
    bool any = false, all_bits = c.is_bits();
    for (int k = 0; k < form.k; ++k) {
      all_bits &= a[k].x.is_bits() && b[k].x.is_bits();
      if ((a[k].zero && b[k].finite) || (b[k].zero && a[k].finite)) continue;
      any = true;
      made =
          joined_hash(made, joined_hash(static_cast<uint64_t>(k), joined_hash(a[k].x.hash(), b[k].x.hash())));
    }
    if (all_bits) return kBits;
    constexpr Term kUnchanged = kIsCanonical | kIsNotMinusZero;
    if (!any && wide && (c.of & kUnchanged) == kUnchanged) return c.of;
    return term(made, wide ? kUnchanged : 0);
  }

  Term read(const Warp& warp, const vm::BytePlace& from, uint32_t half) {
    if (from.slot != vm::no_slot)
      return cell(warp, from.slot, static_cast<int>(from.at / kHalf + half), from.lane);
    const uint64_t address = from.at + uint64_t{kHalf} * half;
    if (from.space == ptx::Space::shared || from.space == ptx::Space::local) {
      const auto place = cells_.place(warp.index, from.lane, from.space, address);
      const Term found = (*place.cells)[place.at];
      const bool own = from.space == ptx::Space::local;
      return found != kUntouched
                 ? found
                 : unwritten(from.space, own ? warp.index * 32 + static_cast<uint64_t>(from.lane) : 0,
                             address / kHalf);
    }
    Buffers::Area* const area = buffers_.find(address, hint_);
    if (!area || area->note.is_bits) return kBits;
    const uint64_t offset = address - area->base;
    const auto place = buffers_.touch(*area, offset);
    const Term found = (*place.cells)[place.at];
    return found != kUntouched ? found : term(joined_hash(area->note.begins, offset / kHalf));
  }
  void write(const Warp& warp, const vm::BytePlace& to, uint32_t half, Term made) {
    if (to.slot != vm::no_slot) {
      cell(warp, to.slot, static_cast<int>(to.at / kHalf + half), to.lane) = made;
      return;
    }
    const uint64_t address = to.at + uint64_t{kHalf} * half;
    if (to.space == ptx::Space::shared || to.space == ptx::Space::local) {
      const auto place = cells_.place(warp.index, to.lane, to.space, address);
      (*place.cells)[place.at] = made;
      return;
    }
    Buffers::Area* const area = buffers_.find(address, hint_);
    if (area && !area->note.is_bits) {
      const auto place = buffers_.touch(*area, address - area->base);
      (*place.cells)[place.at] = made;
    } else if (made != kBits) {
      lose("memory that is no buffer");
    }
  }

  void carry(const Warp& warp, const Op& op, const vm::Signature& s, uint32_t mask) {
    const vm::Executed done = vm::executed(warp, op, mask);
    const bool loads = s.flow() == Flow::load;
    moved_.clear();
    bool bytes = false;
    each_transfer(done, [&](const vm::Transfer& t) {
      const uint32_t count = std::max(1u, t.bytes / kHalf);
      for (uint32_t half = 0; half < count; ++half) {
        moved_.push_back(read(warp, t.from, half));
        bytes |= moved_.back() != kBits &&
                 (t.bytes % kHalf != 0 || (loads && ptx::is_signed(op.type) && t.bytes < 4));
      }
    });
    if (bytes) return lose("single bytes, or a copied sign");
    for (const vm::Use& use : s.writes) clear(warp, use, mask);
    const Term* next = moved_.data();
    each_transfer(done, [&](const vm::Transfer& t) {
      const uint32_t count = std::max(1u, t.bytes / kHalf);
      for (uint32_t half = 0; half < count; ++half) {
        if (t.bytes % kHalf != 0 && read(warp, t.to, half) > kUntouched && t.to.slot == vm::no_slot)
          lose("single bytes");
        write(warp, t.to, half, *next++);
      }
    });
    if (s.flow() == Flow::exchange)
      vm::each_lane(mask, [&](int lane) {
        if (!(mask >> (warp.lane_source[lane] & 31) & 1))
          for (int half = 0; half < 2; ++half) cell(warp, op.d, half, lane) = unwritten({}, 1, 0);
      });
  }

  Buffers& buffers_;
  vm::BlockCells<vm::CellArray<Term>, kHalf> cells_;
  std::vector<Staged> staged_;
  std::vector<Term> moved_;
  std::vector<Value> values_;
  size_t hint_ = 0;
};

bool is_workspace(const Program& program, const std::string& name) {
  return std::any_of(program.workspaces.begin(), program.workspaces.end(),
                     [&](const Workspace& each) { return each.name == name; });
}
bool is_constant(const Program& program, const std::string& name) {
  return std::any_of(program.constants.begin(), program.constants.end(),
                     [&](const Tensor& each) { return each.name == name; });
}

}  // namespace

Terms terms_of(const Program& program, const TensorMap& inputs, const vm::MachineOptions& options) {
  vm::PreparedProgram prepared(program, inputs, options);
  Buffers buffers;
  Terms terms;
  for (const vm::Allocation& a : prepared.memory().allocations()) {
    if (!vm::is_buffer(a.base)) continue;
    buffers.add(a.name, a.base, a.bytes, kHalf, kUntouched,
                {fnv1a(a.name), a.parts.empty() && is_constant(program, a.name)});
    if (a.pages) terms.lost = "memory made page by page";
  }
  TermTrace trace(buffers);
  for (size_t i = 0; i < program.launches.size() && terms.lost.empty(); ++i) {
    if (vm::run_traced(prepared, i, trace).trap) terms.lost = "a trap";
    if (!trace.lost.empty()) terms.lost = trace.lost;
  }
  if (!terms.lost.empty()) return terms;
  for (const vm::Allocation& a : prepared.memory().allocations()) {
    const Buffers::Area* const area = vm::is_buffer(a.base) ? buffers.find(a.name) : nullptr;
    if (!area || area->note.is_bits || is_workspace(program, a.name)) continue;
    std::vector<uint64_t>& left = terms.left[a.name];
    for (uint64_t offset = 0; offset < a.bytes; offset += kHalf) {
      const auto [cells, at] = Buffers::seen(*area, offset);
      const Term found = cells ? (*cells)[at] : kUntouched;
      uint16_t bits = 0;
      std::memcpy(&bits, a.data + offset, std::min<uint64_t>(kHalf, a.bytes - offset));
      left.push_back(found == kBits ? joined_hash(0x62697473, bits) : found);
    }
  }
  return terms;
}

bool same_terms(const Program& program, const Program& other, const TensorMap& inputs,
                const vm::MachineOptions& options) {
  const Terms was = terms_of(program, inputs, options);
  if (!was.lost.empty()) return false;
  const Terms is = terms_of(other, inputs, options);
  return is.lost.empty() && was.left == is.left;
}

}  // namespace assay
