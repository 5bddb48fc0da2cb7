// Indices that wrap around at 32 bits on their way to an address. Beside a 32-bit register whose last integer
// operation wrapped stand the values it would have had with unbounded integers, once with all that it was
// made of read as signed and once as unsigned; PTX's add.s32 and mul.lo.s32 serve both. Where such a register
// is widened (cvt to 64 bits, mul.wide, mad.wide) or is an address itself, and the machine's value is neither
// of the two, the address is wrong: a finding where it is used, in bounds or not.
//
// Addition, subtraction, products, left shifts, negation and what signed division, shift, minimum and maximum
// make of them carry the values on, and so do moves, selections, shuffles and local memory. Bit operations
// and unsigned division end them: hashes and generators of random numbers wrap on purpose. A 64-bit value
// that is narrowed and does not fit counts as wrapped too, but not where it is a shared address: of an index
// into shared memory compilers keep 32 bits right and let the upper ones of a 64-bit register be. Nor does it
// where a negative number was widened without its sign, -64 to 4294967232, and with the sign the sum fits:
// loops count in 64 bits of which nobody reads the upper ones. Of a constant before a left shift by a
// constant only the bits that the shift keeps mean anything: compilers write (x - 1) 128 as
// (x + 0x1ffffff) << 7.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/base/vm/cell_memory.h"
#include "src/base/vm/checks/check.h"

namespace assay::vm {

class WrapCheck;

/// How an op passes on what wrapped.
struct WrapFacts {
  /// What its result is, beside the machine's; null: looked at in `after`, or it has none.
  void (WrapCheck::*pass)(Warp&, const Op&, const WrapFacts&, uint32_t mask) = nullptr;
  bool reaches = false, carries = false;  ///< memory; bits from place to place
  bool is_signed = false, wide = false;
  int count = 0;  ///< sources
  bool may_wrap = false, adds = false, shifts_left = false;
  int demand = 32;  ///< low bits of the result that anything makes use of: fewer before a left shift
};

class WrapCheck : public Check<WrapFacts> {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::before | hook::after;
  explicit WrapCheck(const CheckSetup& setup) : Check(setup) {}

  void enter(const LaunchContext& context) {
    begin_code(context, facts_of);
    immediate_.assign(code_->file_bytes / 64 + 4, nullptr);
    for (const Immediate& immediate : code_->immediates) immediate_[immediate.slot / 64] = &immediate;
    find_demands();
  }

  void begin_block(Block& block) {
    block_ = &block;
    ideals_.begin(block, *code_);
    with_sign_.begin(block, *code_);
    local_.begin_local(block, {});
  }

  void before(Warp& warp, const Op& op, uint32_t mask) {
    const WrapFacts& f = facts(op);
    if (f.pass) return (this->*f.pass)(warp, op, f, mask);
    if (f.reaches || f.carries)
      for (const Access& access : signature(op).accesses)
        if (access.reach != Access::Reach::descriptor) use(warp, op, access, mask);
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const WrapFacts& f = facts(op);
    if (f.carries) return transfer(warp, op, mask);
    if (f.reaches && op.d != no_slot) clear(warp, op, f, mask);
  }

 private:
  static constexpr CheckSentence index_wrap{
      CheckKind::index_wrap,
      "{made} at {at} wraps around at 32 bits: the index is {is} and should be {meant}; {used} at {other} by "
      "{other_thread} reaches {element}"};

  /// Unbounded as far as anything that fits an address is concerned.
  static int64_t bounded(__int128 x) {
    constexpr __int128 limit = static_cast<__int128>(1) << 62;
    return static_cast<int64_t>(x > limit ? limit : x < -limit ? -limit : x);
  }

  /// What integer operations do on 32 bits; on 64 bits those that are `wide` carry on what wrapped before.
  struct Followed {
    ptx::Operation operation;
    decltype(WrapFacts::pass) pass;
    bool may_wrap;
    decltype(WrapFacts::pass) wide;  ///< of 64 bits; null: ends there

    static const Followed* find(ptx::Operation operation) {
      using I = __int128;
      using W = WrapCheck;
      using ptx::Operation;
      constexpr auto sum = [](I a, I b, I) { return a + b; };
      constexpr auto difference = [](I a, I b, I) { return a - b; };
      constexpr auto product = [](I a, I b, I) { return a * b; };
      constexpr auto multiply_add = [](I a, I b, I c) { return a * b + c; };
      constexpr auto left = [](I a, I b, I) { return a << (b < 0 || b > 32 ? 32 : static_cast<int>(b)); };
      constexpr auto right = [](I a, I b, I) { return a >> static_cast<int>(std::clamp<I>(b, 0, 63)); };
      static constexpr Followed all[] = {
          {Operation::add, &W::arithmetic<sum>, true, &W::wide_arithmetic<sum>},
          {Operation::sub, &W::arithmetic<difference>, true, &W::wide_arithmetic<difference>},
          {Operation::mul, &W::arithmetic<product>, true, &W::wide_arithmetic<product>},
          {Operation::mad, &W::arithmetic<multiply_add>, true, &W::wide_arithmetic<multiply_add>},
          {Operation::shl, &W::arithmetic<left>, true, &W::carry_on},
          {Operation::neg, &W::arithmetic<[](I a, I, I) { return -a; }>, true, nullptr},
          {Operation::shr, &W::signed_only<right>, false, nullptr},
          {Operation::div, &W::signed_only<[](I a, I b, I) { return b == 0 ? 0 : a / b; }>, false, nullptr},
          {Operation::rem, &W::signed_only<[](I a, I b, I) { return b == 0 ? 0 : a % b; }>, false, nullptr},
          {Operation::min, &W::signed_only<[](I a, I b, I) { return std::min(a, b); }>, false, &W::carry_on},
          {Operation::max, &W::signed_only<[](I a, I b, I) { return std::max(a, b); }>, false, &W::carry_on}};
      const auto found = std::find_if(std::begin(all), std::end(all),
                                      [&](const Followed& f) { return f.operation == operation; });
      return found == std::end(all) ? nullptr : found;
    }
  };
  /// What a wrapped 32-bit value should be; of a widened one, what it should be and what it is.
  struct Ideal {
    int64_t as_signed = 0, as_unsigned = 0;
    uint32_t maker = 0;  ///< 1 + the op that wrapped, by its number; 0: it has not wrapped
  };
  using Ideals = RegisterMarks<Ideal>;

  static WrapFacts facts_of(const Op& op, const Signature& signature) {
    using ptx::Operation;
    const Meaning& meaning = *signature.meaning;
    const ptx::Type result = meaning.result, from = meaning.sources[0];
    WrapFacts f{.reaches = reaches_memory(signature), .carries = carries(signature)};
    if (f.reaches || f.carries || op.d == no_slot || op.d_cell == Cell::mask || op.slots) return f;
    f.pass = &WrapCheck::clear;
    for (const ptx::Type source : meaning.sources) f.count += source != ptx::Type::none;
    f.wide = op.d_cell == Cell::wide;
    f.is_signed = result == ptx::Type::s32 || from == ptx::Type::s32;
    const ptx::Form& form = signature.form;
    if (form.carry_in || form.carry_out || form.saturates || form.packed) return f;
    const Flow flow = signature.flow();
    if (flow == Flow::address) return {.pass = &WrapCheck::carry_on, .wide = f.wide, .count = 1};
    if (flow == Flow::select) return f;
    const bool to_32 = result == ptx::Type::s32 || result == ptx::Type::u32 || result == ptx::Type::b32;
    const bool from_word = cell_of(from) == Cell::word, from_32 = from_word && ptx::bytes_of(from) == 4;
    if (flow == Flow::conversion) {
      const bool floats = ptx::is_float(from) || ptx::is_float(result);
      if (f.wide && !floats) f.pass = from_32 ? &WrapCheck::widen<1> : &WrapCheck::carry_on;
      if (!f.wide && to_32 && !floats && from_32) f.pass = &WrapCheck::carry_on;
      if (!f.wide && to_32 && cell_of(from) == Cell::wide && !floats) f.pass = &WrapCheck::narrow;
      return f;
    }
    if (flow != Flow::integer && flow != Flow::shift) return f;
    const Followed* const followed = Followed::find(form.operation);
    if (!followed || form.product == ptx::Product::hi) return f;
    f.adds = form.operation == Operation::add || form.operation == Operation::sub;
    f.shifts_left = form.operation == Operation::shl;
    if (f.wide && form.product == ptx::Product::wide)
      f.pass = &WrapCheck::widen<2>;
    else if (f.wide && followed->wide)
      f.pass = followed->wide;
    else if (!f.wide && to_32 && from_word && (f.is_signed || followed->may_wrap))
      f.pass = followed->pass, f.may_wrap = followed->may_wrap;
    return f;
  }

  /// Demands grow until nothing changes: sums and products use of their sources what is used of them, left
  /// shifts by a constant so much less, everything else all.
  void find_demands() {
    std::vector<int> demand(immediate_.size(), 0);
    for (bool grows = true; std::exchange(grows, false);)
      for (const Op& op : code_->ops) {
        const WrapFacts& f = facts(op);
        int used = f.may_wrap ? demand[op.d / 64] : 32;
        if (const Immediate* by = f.may_wrap && f.shifts_left ? immediate_[op.s[1] / 64] : nullptr)
          used = std::max(0, std::min(used, 32) - static_cast<int>(std::min<uint64_t>(by->bits, 32)));
        for (const Use& read : signature(op).reads) {
          if (read.slot == no_slot || demand[read.slot / 64] >= used) continue;
          demand[read.slot / 64] = used, grows = true;
        }
      }
    for (const Op& op : code_->ops)
      if (WrapFacts& f = facts_[code_->index(op)]; f.may_wrap) f.demand = demand[op.d / 64];
  }

  /// A 32-bit source, looked up once for all lanes.
  struct Source {
    uint32_t wrapped = 0;  ///< lanes
    const Ideal* ideals = nullptr;
    const uint32_t* words = nullptr;
    bool constant = false;
    int dropped = 0;  ///< high bits of a constant that mean nothing

    /// The unbounded value. Constants are signed: "-1" is added to unsigned numbers as well; where only some
    /// bits of them count, one reading is the signed number of so many bits.
    Ideal operator[](int lane) const {
      if (wrapped >> lane & 1) return ideals[lane];
      const uint32_t bits = words[lane];
      const int64_t as_signed = static_cast<int32_t>(bits);
      if (!constant) return {as_signed, int64_t{bits}, 0};
      return {static_cast<int32_t>(bits << dropped) >> dropped, as_signed, 0};
    }
  };
  Source source(const Warp& warp, Slot slot, int demand = 32) {
    return {ideals_.lanes(warp, slot), &ideals_.at(warp, slot, 0), warp.word(slot),
            immediate_[slot / 64] != nullptr, 32 - std::max(demand, 1)};
  }

  // WrapFacts::pass, down to `narrow`.

  void clear(Warp& warp, const Op& op, const WrapFacts&, uint32_t mask) {
    ideals_.clear(warp, op.d, mask);
    with_sign_.clear(warp, op.d, mask);
  }

  /// unbounded(a, b, c): the operation on integers without bounds. Signed operations do not wrap themselves.
  template <auto unbounded>
  void arithmetic(Warp& warp, const Op& op, const WrapFacts& f, uint32_t mask) {
    // What fits either reading so far has not wrapped: the line to name is that of the first that does not.
    const auto fits = [](const Ideal& y) {
      return (y.as_signed >= INT32_MIN && y.as_signed <= INT32_MAX) ||
             (y.as_unsigned >= 0 && y.as_unsigned <= UINT32_MAX);
    };
    static constexpr std::array<uint32_t, 32> zeros{};
    std::array<Source, 3> sources;
    for (size_t i = 0; i < 3; ++i)
      sources[i] = static_cast<int>(i) < f.count ? source(warp, op.s[i], f.adds ? f.demand : 32)
                                                 : Source{.words = zeros.data()};
    const auto me = static_cast<uint32_t>(code_->index(op)) + 1;
    Ideals::Lanes made;
    each_lane(mask, [&](int lane) {
      const std::array<Ideal, 3> x{sources[0][lane], sources[1][lane], sources[2][lane]};
      const __int128 as_signed = unbounded(x[0].as_signed, x[1].as_signed, x[2].as_signed),
                     as_unsigned = unbounded(x[0].as_unsigned, x[1].as_unsigned, x[2].as_unsigned);
      const auto machine = static_cast<uint32_t>(as_signed);
      if (as_signed == static_cast<int32_t>(machine) && as_unsigned == machine) return;
      const auto wrapped = std::find_if(x.begin(), x.end(), [](const Ideal& y) { return y.maker != 0; });
      const bool inherits = wrapped != x.end() && !std::all_of(x.begin(), x.end(), fits);
      made.add(lane, {bounded(as_signed), bounded(as_unsigned), inherits ? wrapped->maker : me});
    });
    ideals_.put(warp, op.d, mask, made);
  }

  /// Signed division, shift, minimum and maximum of a wrapped value.
  template <auto unbounded>
  void signed_only(Warp& warp, const Op& op, const WrapFacts&, uint32_t mask) {
    const Source first = source(warp, op.s[0]), second = source(warp, op.s[1]);
    Ideals::Lanes made;
    each_lane((first.wrapped | second.wrapped) & mask, [&](int lane) {
      const Ideal a = first[lane], b = second[lane];
      made.add(lane, {bounded(unbounded(a.as_signed, b.as_signed, 0)),
                      bounded(unbounded(a.as_unsigned, b.as_unsigned, 0)), a.maker ? a.maker : b.maker});
    });
    ideals_.put(warp, op.d, mask, made);
  }

  /// As the first source that wrapped.
  void carry_on(Warp& warp, const Op& op, const WrapFacts& f, uint32_t mask) {
    Ideals::Lanes made;
    for (int i = 0; i < f.count; ++i)
      if (op.s[i] != no_slot)
        each_lane(ideals_.lanes(warp, op.s[i]) & mask & ~made.found,
                  [&](int lane) { made.add(lane, ideals_.at(warp, op.s[i], lane)); });
    ideals_.put(warp, op.d, mask, made);
    with_sign_.clear(warp, op.d, mask);
  }

  /// On 64 bits; carries on as well.
  template <auto unbounded>
  void wide_arithmetic(Warp& warp, const Op& op, const WrapFacts& f, uint32_t mask) {
    // A constant of 32 bits with the upper one set, -64 as 4294967232, is a negative word as well.
    const auto negative_word = [&](Slot slot) {
      const Immediate* const immediate = immediate_[slot / 64];
      return immediate && immediate->bits >> 31 == 1;
    };
    uint32_t lanes = 0;
    for (int i = 0; i < f.count; ++i) lanes |= negative_word(op.s[i]) ? ~0u : with_sign_.lanes(warp, op.s[i]);
    RegisterMarks<int64_t>::Lanes signs;
    each_lane(lanes & mask, [&](int lane) {
      const auto with_sign = [&](Slot slot) {
        if (with_sign_.has(warp, slot, lane)) return with_sign_.at(warp, slot, lane);
        const uint64_t bits = warp.wide(slot)[lane];
        return negative_word(slot) ? int64_t{static_cast<int32_t>(bits)} : static_cast<int64_t>(bits);
      };
      std::array<int64_t, 3> x{};
      for (int i = 0; i < f.count; ++i) x[static_cast<size_t>(i)] = with_sign(op.s[i]);
      signs.add(lane, bounded(unbounded(x[0], x[1], x[2])));
    });
    carry_on(warp, op, f, mask);
    with_sign_.put(warp, op.d, mask, signs);
  }

  /// cvt to 64 bits, mul.wide and mad.wide: here it shows whether the machine's value is what was meant. A
  /// wide summand of mad.wide that is wrong already stays so. `words`: sources of 32 bits.
  template <int words>
  void widen(Warp& warp, const Op& op, const WrapFacts& f, uint32_t mask) {
    Ideals::Lanes made;
    for (int i = 0; i < words; ++i)
      each_lane(ideals_.lanes(warp, op.s[i]) & mask & ~made.found, [&](int lane) {
        const Ideal& meant = ideals_.at(warp, op.s[i], lane);
        const uint32_t bits = warp.word(op.s[i])[lane];
        const int64_t is = f.is_signed ? static_cast<int32_t>(bits) : int64_t{bits};
        if (is != meant.as_signed && is != meant.as_unsigned)
          made.add(lane, {f.is_signed ? meant.as_signed : meant.as_unsigned, is, meant.maker});
      });
    if (f.count > 2)
      each_lane(ideals_.lanes(warp, op.s[2]) & mask & ~made.found,
                [&](int lane) { made.add(lane, ideals_.at(warp, op.s[2], lane)); });
    RegisterMarks<int64_t>::Lanes signs;
    if (words == 1 && !f.is_signed)
      each_lane(mask, [&](int lane) {
        const auto with_sign = static_cast<int32_t>(warp.word(op.s[0])[lane]);
        if (with_sign < 0) signs.add(lane, with_sign);
      });
    ideals_.put(warp, op.d, mask, made);
    with_sign_.put(warp, op.d, mask, signs);
  }

  void narrow(Warp& warp, const Op& op, const WrapFacts&, uint32_t mask) {
    const auto me = static_cast<uint32_t>(code_->index(op)) + 1;
    Ideals::Lanes made;
    each_lane(mask, [&](int lane) {
      const auto x = static_cast<int64_t>(warp.wide(op.s[0])[lane]);
      if (x >= INT32_MIN && x <= INT64_C(0xffffffff)) return;
      if (with_sign_.has(warp, op.s[0], lane)) {
        const int64_t signed_sum = with_sign_.at(warp, op.s[0], lane);
        if (signed_sum >= INT32_MIN && signed_sum <= INT32_MAX) return;
      }
      made.add(lane, {bounded(x), bounded(x), me});
    });
    ideals_.put(warp, op.d, mask, made);
  }

  /// An address: wide ones were judged when they were widened, 32-bit ones are judged here, with the offset
  /// that the instruction adds: "[%r1+4096]" may start from a negative %r1.
  void use(const Warp& warp, const Op& op, const Access& access, uint32_t mask) {
    const Slot slot = access.base;
    each_lane(ideals_.lanes(warp, slot) & mask, [&](int lane) {
      Ideal meant = ideals_.at(warp, slot, lane);
      const uint64_t base = access.base_wide ? warp.wide(slot)[lane] : warp.word(slot)[lane];
      const uint64_t address = base + static_cast<uint64_t>(access.offset);
      if (!access.base_wide) {
        meant.as_signed += access.offset, meant.as_unsigned += access.offset;
        const int64_t is = static_cast<uint32_t>(address);
        if (is == meant.as_signed || is == meant.as_unsigned) return;
        meant.as_unsigned = is;
      }
      const Op& maker = code_->ops[meant.maker - 1];
      const bool narrows = facts(maker).pass == &WrapCheck::narrow;
      if (narrows && op.space == ptx::Space::shared) return;
      if (!log_.opens(index_wrap, &maker, &op)) return;
      const bool shared = op.space == ptx::Space::shared || base - shared_window < window_bytes;
      const bool local = op.space == ptx::Space::local || base - local_window < window_bytes;
      const std::string &made = opcode_of(*code_, maker), &used = opcode_of(*code_, op);
      log_.tell(place(warp, maker, lane, made + " wraps"),
                place(warp, op, lane, "uses it in the address of " + used),
                shared  ? "shared memory"
                : local ? "local memory"
                        : block_->context->memory->describe(address),
                fmt::arg("made", made), fmt::arg("is", meant.as_unsigned), fmt::arg("meant", meant.as_signed),
                fmt::arg("used", used));
    });
  }

  Ideal take(const Warp& warp, const BytePlace& from) {
    if (from.slot != no_slot)
      return from.at == 0 && ideals_.has(warp, from.slot, from.lane) ? ideals_.at(warp, from.slot, from.lane)
                                                                     : Ideal{};
    if (from.space != ptx::Space::local) return {};
    const auto place = local_.place(warp.index, from.lane, from.space, from.at);
    return (*place.cells)[place.at];
  }

  void give(const Warp& warp, const BytePlace& to, uint32_t bytes, const Ideal& value) {
    if (to.slot != no_slot) {
      if (value.maker && to.at == 0) ideals_.set(warp, to.slot, to.lane, value);  // else cleared before
    } else if (to.space == ptx::Space::local) {
      const auto place = local_.place(warp.index, to.lane, to.space, to.at);
      for (uint32_t word = 0; 4 * word < bytes; ++word)
        (*place.cells)[place.at + word] = word == 0 ? value : Ideal{};
    }
  }

  void transfer(Warp& warp, const Op& op, uint32_t mask) {
    const bool parameters = copies_parameters(signature(op));
    if (!facts(op).reaches && !parameters) {
      ideals_.carry(warp, op, mask);
      with_sign_.carry(warp, op, mask);
      return;
    }
    const bool follows = parameters || warp.space == ptx::Space::local;
    const Executed done = executed(warp, op, mask);
    staged_.clear();
    if (follows) each_transfer(done, [&](const Transfer& t) { staged_.push_back(take(warp, t.from)); });
    for (const Use& to : signature(op).writes)
      ideals_.clear(warp, to.slot, mask), with_sign_.clear(warp, to.slot, mask);
    const Ideal* next = staged_.data();
    if (follows) each_transfer(done, [&](const Transfer& t) { give(warp, t.to, t.bytes, *next++); });
  }

  Ideals ideals_;
  RegisterMarks<int64_t> with_sign_;  ///< 64-bit registers, were negative words widened with their sign
  std::vector<const Immediate*> immediate_;  ///< by slot / 64; null: none
  BlockCells<CellArray<Ideal>, 4> local_;    ///< unoptimised code keeps its variables there
  std::vector<Ideal> staged_;
};

}  // namespace assay::vm
