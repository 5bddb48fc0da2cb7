// mbarrier (PTX ISA 9.7.13.15): arrivals, bytes expected, waits. The object: src/base/vm/mbarrier.h.
#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/vm/decoder.h"
#include "src/base/vm/mbarrier.h"
#include "src/base/vm/rows/matrix_operands.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

enum Action : uint64_t {
  init,
  inval,
  arrive,
  arrive_drop,
  arrive_extra,  ///< not among the arrivals expected: the phase expects one more
  arrive_expect,
  drop_expect,
  expect,
  complete,
  wait_state,
  wait_parity
};
bool waits(uint64_t action) {
  return action == wait_state || action == wait_parity;
}
bool expects(uint64_t action) {
  return action == arrive_expect || action == drop_expect || action == expect;
}

/// The lane's arrival. False: trapped.
bool arrive_at(Warp& warp, const Op& op, int lane, uint32_t value, Mbarrier& b) {
  const uint32_t count = expects(op.immediate) ? 1 : value;
  if (op.immediate == arrive_extra) ++b.pending;
  if (count > b.pending)
    return raise(warp, op, lane, TrapKind::barrier,
                 "more threads arrive at the mbarrier than its phase expects");
  if (op.immediate == arrive_drop || op.immediate == drop_expect) b.expected -= count;
  b.pending -= count;
  b.complete();
  return true;
}

/// What one lane does to the object. False: trapped.
bool change(Warp& warp, const Op& op, int lane, uint32_t value, Mbarrier& b) {
  if (op.immediate == init) {
    if (value == 0 || value > Mbarrier::most_arrivals)
      return raise(warp, op, lane, TrapKind::barrier, "an mbarrier expects 1 to 1048575 arrivals");
    b = {value, value, 0, false};
    return true;
  }
  const int64_t bytes = expects(op.immediate)      ? int64_t{value}
                        : op.immediate == complete ? -int64_t{value}
                                                   : 0;
  if (!b.add_bytes(bytes))
    return raise(warp, op, lane, TrapKind::barrier,
                 "more bytes are expected in a phase of an mbarrier than it can count (1048575)");
  if (op.immediate == complete) b.complete();
  return op.immediate == complete || op.immediate == expect || arrive_at(warp, op, lane, value, b);
}

/// s[0] the address, s[1] count, bytes, state or parity; d the state or the predicate.
bool act(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, 8, host)) return false;
  uint32_t over = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint64_t word;
    std::memcpy(&word, host[lane], 8);
    const uint32_t value = op.s[1] == no_slot || op.immediate == wait_state ? 1 : warp.word(op.s[1])[lane];
    if (op.immediate != init && word == Mbarrier::none)
      return raise(warp, op, lane, TrapKind::barrier, "there is no initialised mbarrier at this address");
    if (waits(op.immediate)) {
      const bool phase =
          op.immediate == wait_parity ? (value & 1) != 0 : Mbarrier::of(warp.wide(op.s[1])[lane]).phase;
      const Waited waited = wait_for_phase(warp, op, lane, warp.address[lane], phase);
      if (waited == Waited::trapped) return false;
      over |= static_cast<uint32_t>(waited == Waited::over) << lane;
      continue;
    }
    if (op.d != no_slot) warp.wide(op.d)[lane] = word;
    Mbarrier b = Mbarrier::of(word);
    if (op.immediate != inval && !change(warp, op, lane, value, b)) return false;
    word = op.immediate == inval ? Mbarrier::none : b.word();
    std::memcpy(host[lane], &word, 8);
    ++warp.block->changes;
  }
  if (waits(op.immediate)) warp.mask(op.d) = (warp.mask(op.d) & ~mask) | over;
  return true;
}

void decode(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool waiting = words[1] == "test_wait" || words[1] == "try_wait",
             arrives = words[1].starts_with("arrive"), drops = words[1] == "arrive_drop";
  op.space = has("shared") ? Space::shared : Space::generic;
  op.element_bytes = 8;
  op.type = Type::b64;
  op.immediate = words[1] == "init"          ? init
                 : words[1] == "inval"       ? inval
                 : words[1] == "expect_tx"   ? expect
                 : words[1] == "complete_tx" ? complete
                 : waiting                   ? (has("parity") ? wait_parity : wait_state)
                 : has("expect_tx")          ? (drops ? drop_expect : arrive_expect)
                 : drops                     ? arrive_drop
                                             : arrive;
  const std::vector<Operand>& operands = instruction.operands;
  decoder.expect_operands(instruction, op.immediate == inval || arrives ? 1 : 2, waiting ? 4 : 3);
  size_t at = 0;
  if (waiting || (arrives && operands[0].kind != Operand::Kind::address)) {
    op.d = decoder.destination(operands[0], waiting ? Type::pred : Type::b64);
    op.d_cell = waiting ? Cell::mask : Cell::wide;
    at = 1;
  }
  decoder.address(operands[at], op);
  if (operands.size() > at + 1)
    op.s[1] = decoder.source(operands[at + 1], op.immediate == wait_state ? Type::b64 : Type::b32);
  op.source_count = op.s[1] == no_slot ? 1 : 2;
}

bool pending_count(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = Mbarrier::of(warp.wide(op.s[0])[lane]).pending; });
  return true;
}
void decode_pending_count(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  op.d = decoder.destination(instruction.operands[0], Type::b32);
  op.d_cell = Cell::word;
  op.s[0] = decoder.source(instruction.operands[1], Type::b64);
  op.source_count = 1;
}

/// cp.async.mbarrier.arrive{.noinc}: the arrival comes when the thread's copies have landed. Here they land
/// at once, which is one of the orders that hardware may choose, and the arrival follows.
void decode_copy_arrival(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  const std::vector<std::string>& words = decoder.parts(instruction);
  Op landing = op;
  landing.row = find_row("cp.async.wait_all");
  landing.kind = landing.row->kind;
  landing.immediate = ~uint64_t{0};
  decoder.emit(landing);
  op.space = instruction.form.space == Space::shared ? Space::shared : Space::generic;
  op.element_bytes = 8;
  op.type = Type::b64;
  op.immediate = std::find(words.begin(), words.end(), "noinc") != words.end() ? arrive : arrive_extra;
  decoder.address(instruction.operands[0], op);
}

}  // namespace

void decode_stored_barrier(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  if (instruction.operands[2].kind != Operand::Kind::address)
    decoder.fail(instruction, "expected an address in brackets");
  std::tie(op.s[2], op.offset2) = decoder.second_address(instruction.operands[2], &op.address2_wide);
  op.in_cluster = true;
}

void add_mbarrier_rows(std::vector<Row>& rows) {
  const auto add = [&](const char* form, Step step, std::vector<Role> operands) {
    add_warp_row(rows, std::string("mbarrier.") + form,
                 {.operands = std::move(operands), .asynchronous = {Completion::mbarrier, step}}, act,
                 decode);
  };
  add("{init,inval}{,.shared}.b64", Step::none, {Role::store_to, Role::read});
  add("{expect_tx,complete_tx}{,.shared}.b64", Step::arrive, {Role::modify_at, Role::read});
  add("{arrive,arrive_drop}{,.noComplete,.expect_tx}{,.shared}.b64", Step::arrive,
      {Role::write_any, Role::modify_at, Role::read});
  add("{test_wait,try_wait}{,.parity}{,.shared}.b64", Step::wait, {Role::write, Role::load_from, Role::read});
  add_warp_row(rows, "cp.async.mbarrier.arrive{,.noinc}{,.shared}.b64",
               {.operands = {Role::modify_at}, .asynchronous = {Completion::mbarrier, Step::arrive}}, act,
               decode_copy_arrival);
  add_warp_row(rows, "mbarrier.pending_count.b64", {.flow = Flow::integer}, pending_count,
               decode_pending_count);
}

}  // namespace assay::vm
