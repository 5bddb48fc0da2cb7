#include "src/base/vm/checks/wrap_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/vm/rows/warp_rows.h"

namespace assay::vm {
namespace {

constexpr CheckLog::Kind index_wrap{"wrap", "index-wrap"};

/// Unbounded as far as anything that fits an address is concerned.
int64_t bounded(__int128 x) {
  constexpr __int128 limit = static_cast<__int128>(1) << 62;
  return static_cast<int64_t>(x > limit ? limit : x < -limit ? -limit : x);
}

}  // namespace

/// What integer operations do on 32 bits; on 64 bits those that are `wide` carry on what wrapped before.
struct WrapCheck::Followed {
  ptx::Operation operation;
  Act act;
  bool wide;
  Unbounded unbounded;

  static const Followed* find(ptx::Operation operation) {
    using I = __int128;
    using ptx::Operation;
    static constexpr Followed all[] = {
        {Operation::add, Act::arithmetic, true, [](I a, I b, I) { return a + b; }},
        {Operation::sub, Act::arithmetic, true, [](I a, I b, I) { return a - b; }},
        {Operation::mul, Act::arithmetic, true, [](I a, I b, I) { return a * b; }},
        {Operation::mad, Act::arithmetic, true, [](I a, I b, I c) { return a * b + c; }},
        {Operation::shl, Act::arithmetic, true,
         [](I a, I b, I) { return a << (b < 0 || b > 32 ? 32 : static_cast<int>(b)); }},
        {Operation::neg, Act::arithmetic, false, [](I a, I, I) { return -a; }},
        {Operation::shr, Act::signed_only, false,
         [](I a, I b, I) { return a >> static_cast<int>(std::clamp<I>(b, 0, 63)); }},
        {Operation::div, Act::signed_only, false, [](I a, I b, I) { return b == 0 ? 0 : a / b; }},
        {Operation::rem, Act::signed_only, false, [](I a, I b, I) { return b == 0 ? 0 : a % b; }},
        {Operation::min, Act::signed_only, true, [](I a, I b, I) { return std::min(a, b); }},
        {Operation::max, Act::signed_only, true, [](I a, I b, I) { return std::max(a, b); }}};
    const auto found = std::find_if(std::begin(all), std::end(all),
                                    [&](const Followed& f) { return f.operation == operation; });
    return found == std::end(all) ? nullptr : found;
  }
};

WrapCheck::Facts WrapCheck::facts_of(const Op& op, const Signature& signature) {
  using ptx::Operation;
  Facts f;
  const Meaning& meaning = *signature.meaning;
  const ptx::Type result = meaning.result, from = meaning.sources[0];
  if (carries(signature))
    f.act = Act::transfer;
  else if (reaches_memory(signature))
    f.act = Act::address;
  if (f.act != Act::none || op.d == no_slot || op.d_cell == Cell::mask || op.slots) return f;
  f.act = Act::clear;
  for (const ptx::Type source : meaning.sources) f.count += source != ptx::Type::none;
  f.wide = op.d_cell == Cell::wide;
  f.is_signed = result == ptx::Type::s32 || from == ptx::Type::s32;
  const ptx::Form& form = signature.form;
  if (form.carry_in || form.carry_out || form.saturates || form.packed) return f;
  const Flow flow = signature.flow();
  if (flow == Flow::address) return {.act = Act::carry_on, .wide = f.wide, .count = 1};
  if (flow == Flow::select) return f;
  const bool to_32 = result == ptx::Type::s32 || result == ptx::Type::u32 || result == ptx::Type::b32;
  const bool from_word = cell_of(from) == Cell::word, from_32 = from_word && ptx::bytes_of(from) == 4;
  if (flow == Flow::conversion) {
    const bool floats = ptx::is_float(from) || ptx::is_float(result);
    if (f.wide && !floats) f.act = from_32 ? Act::widen : Act::carry_on;
    if (!f.wide && to_32 && !floats && from_32) f.act = Act::carry_on;
    if (!f.wide && to_32 && cell_of(from) == Cell::wide && !floats) f.act = Act::narrow;
    return f;
  }
  if (flow != Flow::integer && flow != Flow::shift) return f;
  const Followed* const followed = Followed::find(form.operation);
  if (!followed || form.product == ptx::Product::hi) return f;
  f.unbounded = followed->unbounded;
  f.adds = form.operation == Operation::add || form.operation == Operation::sub;
  f.shifts_left = form.operation == Operation::shl;
  if (f.wide && form.product == ptx::Product::wide)
    f.act = Act::widen_product;
  else if (f.wide && followed->wide)
    f.act = Act::carry_on;
  else if (!f.wide && to_32 && from_word && (f.is_signed || followed->act == Act::arithmetic))
    f.act = followed->act;
  return f;
}

void WrapCheck::enter(const LaunchContext& context) {
  code_ = context.code;
  facts_.clear();
  for (const Op& op : code_->ops) facts_.push_back(facts_of(op, code_->signature(op)));
  immediate_.assign(code_->file_bytes / 64 + 4, nullptr);
  for (const Immediate& immediate : code_->immediates) immediate_[immediate.slot / 64] = &immediate;
  event_of_op_.clear();
  find_demands();
}

/// Demands grow until nothing changes: sums and products use of their sources what is used of them, left
/// shifts by a constant so much less, everything else all.
void WrapCheck::find_demands() {
  std::vector<int> demand(immediate_.size(), 0);
  for (bool grows = true; std::exchange(grows, false);)
    for (size_t i = 0; i < facts_.size(); ++i) {
      const Op& op = code_->ops[i];
      int used = facts_[i].act == Act::arithmetic ? demand[op.d / 64] : 32;
      const auto use = [&](Slot slot) {
        if (slot == no_slot || demand[slot / 64] >= used) return;
        demand[slot / 64] = used, grows = true;
      };
      const Immediate* by =
          facts_[i].act == Act::arithmetic && facts_[i].shifts_left ? immediate_[op.s[1] / 64] : nullptr;
      if (by) used = std::max(0, std::min(used, 32) - static_cast<int>(std::min<uint64_t>(by->bits, 32)));
      for (const Use& read : code_->signature(op).reads) use(read.slot);
    }
  for (size_t i = 0; i < facts_.size(); ++i)
    if (facts_[i].act == Act::arithmetic) facts_[i].demand = demand[code_->ops[i].d / 64];
}

void WrapCheck::begin_block(Block& block) {
  block_ = &block;
  warps_.resize(block.warps.size());
  for (WarpState& w : warps_) {
    w.wrapped.assign(code_->file_bytes / 64 + 4, 0);
    w.ideal.resize(code_->file_bytes / 4 + 64);
  }
  local_.begin_local(block, {});
}

/// The unbounded value of a 32-bit source. Constants are signed: "-1" is added to unsigned numbers as well;
/// where only `demand` bits of them count, one reading is the signed number of so many bits.
WrapCheck::Ideal WrapCheck::value(const Warp& warp, Slot slot, int lane, int demand) {
  if (wrapped(warp, slot) >> lane & 1) return ideal(warp, slot, lane);
  const uint32_t bits = warp.word(slot)[lane];
  const int64_t as_signed = static_cast<int32_t>(bits);
  if (!immediate_[slot / 64]) return {as_signed, int64_t{bits}, 0};
  const int dropped = 32 - std::max(demand, 1);
  return {static_cast<int32_t>(bits << dropped) >> dropped, as_signed, 0};
}

void WrapCheck::put(Warp& warp, Slot slot, uint32_t mask, uint32_t found,
                    const std::array<Ideal, 32>& values) {
  uint32_t& lanes = wrapped(warp, slot);
  lanes = (lanes & ~mask) | found;
  for_lanes(found, [&](int lane) { ideal(warp, slot, lane) = values[static_cast<size_t>(lane)]; });
}

uint32_t WrapCheck::event(Warp& warp, const Op& op, int lane) {
  const auto [known, is_new] = event_of_op_.try_emplace(&op, static_cast<uint32_t>(events_.size()));
  if (is_new)
    events_.push_back({&op, log_.place({&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)},
                                       opcode_of(*code_, op) + " wraps")});
  return known->second;
}

void WrapCheck::before(Warp& warp, const Op& op, uint32_t mask) {
  const Facts& f = facts_[static_cast<size_t>(&op - code_->ops.data())];
  switch (f.act) {
    case Act::none:
      return;
    case Act::clear:
      wrapped(warp, op.d) &= ~mask;
      return;
    case Act::arithmetic:
      return arithmetic(warp, op, f, mask);
    case Act::signed_only:
      return signed_only(warp, op, f, mask);
    case Act::carry_on:
      return carry_on(warp, op, f, mask);
    case Act::widen:
    case Act::widen_product:
      return widen(warp, op, f, mask);
    case Act::narrow:
      return narrow(warp, op, mask);
    case Act::transfer:
    case Act::address:
      for (const Access& access : code_->signature(op).accesses)
        if (access.reach != Access::Reach::descriptor) use(warp, op, access, mask);
      return;
  }
}

void WrapCheck::arithmetic(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  std::array<Ideal, 32> made;
  uint32_t found = 0;
  for_lanes(mask, [&](int lane) {
    std::array<Ideal, 4> x;
    for (int i = 0; i < f.count; ++i)
      x[static_cast<size_t>(i)] = value(warp, op.s[i], lane, f.adds ? f.demand : 32);
    const __int128 as_signed = f.unbounded(x[0].as_signed, x[1].as_signed, x[2].as_signed),
                   as_unsigned = f.unbounded(x[0].as_unsigned, x[1].as_unsigned, x[2].as_unsigned);
    const auto machine = static_cast<uint32_t>(as_signed);
    if (as_signed == static_cast<int32_t>(machine) && as_unsigned == machine) return;
    uint32_t from = 0;
    bool inherited = false;
    for (int i = 0; i < f.count && !inherited; ++i)
      if (wrapped(warp, op.s[i]) >> lane & 1) from = x[static_cast<size_t>(i)].event, inherited = true;
    // What fits either reading so far has not wrapped: the line to name is that of the first that does not.
    const auto fits = [](const Ideal& y) {
      return (y.as_signed >= INT32_MIN && y.as_signed <= INT32_MAX) ||
             (y.as_unsigned >= 0 && y.as_unsigned <= UINT32_MAX);
    };
    Ideal& to = made[static_cast<size_t>(lane)];
    to = {bounded(as_signed), bounded(as_unsigned), 0};
    bool sources_fit = true;
    for (int i = 0; i < f.count; ++i) sources_fit &= fits(x[static_cast<size_t>(i)]);
    to.event = inherited && !sources_fit ? from : event(warp, op, lane);
    found |= 1u << lane;
  });
  put(warp, op.d, mask, found, made);
}

/// Signed division, shift, minimum and maximum of a wrapped value; nothing wraps here.
void WrapCheck::signed_only(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  std::array<Ideal, 32> made;
  const uint32_t found = (wrapped(warp, op.s[0]) | wrapped(warp, op.s[1])) & mask;
  for_lanes(found, [&](int lane) {
    const Ideal a = value(warp, op.s[0], lane), b = value(warp, op.s[1], lane);
    const uint32_t event = wrapped(warp, op.s[0]) >> lane & 1 ? a.event : b.event;
    made[static_cast<size_t>(lane)] = {bounded(f.unbounded(a.as_signed, b.as_signed, 0)),
                                       bounded(f.unbounded(a.as_unsigned, b.as_unsigned, 0)), event};
  });
  put(warp, op.d, mask, found, made);
}

void WrapCheck::carry_on(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  uint32_t found = 0;
  std::array<Ideal, 32> made;
  for (int i = 0; i < f.count; ++i) {
    if (op.s[i] == no_slot) continue;
    const uint32_t here = wrapped(warp, op.s[i]) & mask & ~found;
    for_lanes(here, [&](int lane) { made[static_cast<size_t>(lane)] = ideal(warp, op.s[i], lane); });
    found |= here;
  }
  put(warp, op.d, mask, found, made);
}

/// cvt to 64 bits, mul.wide and mad.wide: here it shows whether the machine's value is what was meant. A wide
/// summand of mad.wide that is wrong already stays so.
void WrapCheck::widen(Warp& warp, const Op& op, const Facts& f, uint32_t mask) {
  uint32_t found = 0;
  std::array<Ideal, 32> made;
  const int words = f.act == Act::widen ? 1 : 2;
  for (int i = 0; i < words; ++i)
    for_lanes(wrapped(warp, op.s[i]) & mask & ~found, [&](int lane) {
      const Ideal& meant = ideal(warp, op.s[i], lane);
      const uint32_t bits = warp.word(op.s[i])[lane];
      const int64_t is = f.is_signed ? static_cast<int32_t>(bits) : int64_t{bits};
      if (is == meant.as_signed || is == meant.as_unsigned) return;
      made[static_cast<size_t>(lane)] = {f.is_signed ? meant.as_signed : meant.as_unsigned, is, meant.event};
      found |= 1u << lane;
    });
  if (f.count > 2) {
    const uint32_t before = wrapped(warp, op.s[2]) & mask & ~found;
    for_lanes(before, [&](int lane) { made[static_cast<size_t>(lane)] = ideal(warp, op.s[2], lane); });
    found |= before;
  }
  put(warp, op.d, mask, found, made);
}

void WrapCheck::narrow(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t found = 0;
  std::array<Ideal, 32> made;
  for_lanes(mask, [&](int lane) {
    const auto x = static_cast<int64_t>(warp.wide(op.s[0])[lane]);
    if (x >= INT32_MIN && x <= INT64_C(0xffffffff)) return;
    made[static_cast<size_t>(lane)] = {bounded(x), bounded(x), event(warp, op, lane)};
    found |= 1u << lane;
  });
  put(warp, op.d, mask, found, made);
}

/// An address: wide ones were judged when they were widened, 32-bit ones are judged here, with the offset
/// that the instruction adds: "[%r1+4096]" may start from a negative %r1.
void WrapCheck::use(Warp& warp, const Op& op, const Access& access, uint32_t mask) {
  const Slot slot = access.base;
  const bool wide = access.base_wide;
  const int64_t offset = access.offset;
  const uint32_t suspects = wrapped(warp, slot) & mask;
  for_lanes(suspects, [&](int lane) {
    Ideal meant = ideal(warp, slot, lane);
    if (!wide) {
      meant.as_signed += offset, meant.as_unsigned += offset;
      const int64_t is = static_cast<uint32_t>(warp.word(slot)[lane] + static_cast<uint32_t>(offset));
      if (is == meant.as_signed || is == meant.as_unsigned) return;
      meant.as_unsigned = is;
    }
    const Event& made = events_[meant.event];
    CheckFinding* finding = log_.open(index_wrap, made.op, &op);
    if (!finding) return;
    const Site user{&op, block_->linear, warp.index * 32 + static_cast<uint32_t>(lane)};
    finding->at = log_.place({made.op, user.block, user.thread}, made.place.access);
    finding->other = log_.place(user, "uses it in the address of " + opcode_of(*code_, op));
    const uint64_t base = wide ? warp.wide(slot)[lane] : warp.word(slot)[lane];
    const bool shared = op.space == ptx::Space::shared || base - shared_window < window_bytes;
    const bool local = op.space == ptx::Space::local || base - local_window < window_bytes;
    finding->element = shared || local
                           ? (shared ? "shared memory" : "local memory")
                           : block_->context->memory->describe(base + static_cast<uint64_t>(offset));
    finding->message = fmt::format(
        "{} at {} wraps around at 32 bits: the index is {} and should be {}; {} at {} by {} reaches {}",
        opcode_of(*code_, *made.op), place_text(finding->at.where), meant.as_unsigned, meant.as_signed,
        opcode_of(*code_, op), place_text(finding->other->where), thread_text(*finding->other),
        finding->element);
  });
}

void WrapCheck::after(Warp& warp, const Op& op, uint32_t mask) {
  const Act act = facts_[static_cast<size_t>(&op - code_->ops.data())].act;
  if (act == Act::transfer) return transfer(warp, op, mask);
  if (act == Act::address && op.d != no_slot) wrapped(warp, op.d) &= ~mask;
}

WrapCheck::Ideal WrapCheck::take(const Warp& warp, const BytePlace& from) {
  if (from.slot != no_slot)
    return from.at == 0 && wrapped(warp, from.slot) >> from.lane & 1 ? ideal(warp, from.slot, from.lane)
                                                                     : Ideal{};
  if (from.space != ptx::Space::local) return {};
  const auto place = local_.place(warp.index, from.lane, from.space, from.at);
  return (*place.cells)[place.at];
}

void WrapCheck::give(const Warp& warp, const BytePlace& to, uint32_t bytes, const Ideal& value) {
  if (to.slot != no_slot) {
    if (!value.event || to.at > 0) return;  // cleared before
    wrapped(warp, to.slot) |= 1u << to.lane;
    ideal(warp, to.slot, to.lane) = value;
  } else if (to.space == ptx::Space::local) {
    const auto place = local_.place(warp.index, to.lane, to.space, to.at);
    for (uint32_t word = 0; 4 * word < bytes; ++word)
      (*place.cells)[place.at + word] = word == 0 ? value : Ideal{};
  }
}

void WrapCheck::transfer(Warp& warp, const Op& op, uint32_t mask) {
  const Signature& signature = code_->signature(op);
  const bool between_registers = !reaches_memory(signature) && !copies_parameters(signature);
  uint32_t sources = 0;
  for (const Use& from : signature.reads) sources |= wrapped(warp, from.slot);
  const bool follows = between_registers ? !op.slots && sources != 0
                                         : copies_parameters(signature) || warp.space == ptx::Space::local;
  const Executed done = executed(warp, op, mask);
  staged_.clear();
  if (follows) each_transfer(done, [&](const Transfer& t) { staged_.push_back(take(warp, t.from)); });
  for (const Use& to : signature.writes) wrapped(warp, to.slot) &= ~mask;
  const Ideal* next = staged_.data();
  if (follows) each_transfer(done, [&](const Transfer& t) { give(warp, t.to, t.bytes, *next++); });
}

}  // namespace assay::vm
