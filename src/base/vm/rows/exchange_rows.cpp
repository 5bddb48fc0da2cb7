// Exchange between the lanes of a warp: shfl, vote, redux, match, activemask (PTX ISA 9.7.9, 9.7.13).
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

/// A .sync instruction names its lanes; those that have not exited must be executing it now, and it must name
/// them all.
bool members_agree(Warp& warp, const Op& op, uint32_t mask, Slot members) {
  const uint32_t named = warp.word(members)[std::countr_zero(mask)];
  const uint32_t absent = named & warp.live & ~mask;
  if (absent)
    return raise(
        warp, op, std::countr_zero(absent), TrapKind::barrier,
        fmt::format("{}: named by the member mask {:#010x}, but elsewhere", lanes_text(absent), named));
  if (mask & ~named)
    return raise(warp, op, std::countr_zero(mask & ~named), TrapKind::barrier,
                 fmt::format("{}: executing it without being in the member mask {:#010x}",
                             lanes_text(mask & ~named), named));
  return true;
}

/// Lanes that execute one instruction together may name different members (tiles of a warp): each set of
/// lanes with one mask is an exchange of its own.
template <bool (*exchange)(Warp&, const Op&, uint32_t), int members>
bool by_members(Warp& warp, const Op& op, uint32_t mask) {
  if (op.s[members] == no_slot) return exchange(warp, op, mask);
  const uint32_t *const names = warp.word(op.s[members]), first = names[std::countr_zero(mask)];
  uint32_t others = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) others |= (names[lane] ^ first) & (0u - ((mask >> lane) & 1));
  if (!others) return exchange(warp, op, mask);
  uint32_t named[32];
  std::memcpy(named, names, sizeof named);
  for (uint32_t rest = mask; rest;) {
    const uint32_t leader = named[std::countr_zero(rest)];
    uint32_t group = 0;
    each_lane(rest, [&](int lane) { group |= static_cast<uint32_t>(named[lane] == leader) << lane; });
    if (!exchange(warp, op, group)) return false;
    rest &= ~group;
  }
  return true;
}

/// A lane that reads one that does not take part gets all ones (the value is undefined).
bool shuffle(Warp& warp, const Op& op, uint32_t mask) {
  if (op.s[3] != no_slot && !members_agree(warp, op, mask, op.s[3])) return false;
  uint32_t value[32], from[32];
  std::memcpy(value, warp.word(op.s[0]), sizeof value);
  const uint32_t inside =
      lane_kit().shuffle_sources(op.immediate, warp.word(op.s[1]), warp.word(op.s[2]), from);
  uint32_t* d = warp.word(op.d);
  each_lane(mask, [&](int lane) {
    warp.lane_source[lane] = from[lane];
    d[lane] = (mask >> from[lane]) & 1 ? value[from[lane]] : 0xffffffffu;
  });
  if (op.d2 != no_slot) warp.mask(op.d2) = (warp.mask(op.d2) & ~mask) | (inside & mask);
  return true;
}

void decode_shuffle(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  const bool sync = words[1] == "sync";
  decoder.expect_operands(instruction, sync ? 5 : 4, sync ? 5 : 4);
  const std::string& mode = words[sync ? 2 : 1];
  op.immediate = mode == "up" ? up : mode == "down" ? down : mode == "bfly" ? bfly : idx;
  const Operand& to = instruction.operands[0];
  op.d = decoder.destination(to.kind == Operand::Kind::pair ? to.elements[0] : to, Type::b32);
  if (to.kind == Operand::Kind::pair) op.d2 = decoder.destination(to.elements[1], Type::pred);
  for (size_t i = 0; i + 1 < instruction.operands.size(); ++i)
    op.s[i] = decoder.source(instruction.operands[1 + i], Type::b32);
  op.d_cell = Cell::word;
  op.source_count = sync ? 4 : 3;
}

enum VoteMode : uint64_t { all, any, uni, ballot };

bool vote(Warp& warp, const Op& op, uint32_t mask) {
  if (!members_agree(warp, op, mask, op.s[1])) return false;
  const uint32_t votes = (op.third_negated ? ~warp.mask(op.s[0]) : warp.mask(op.s[0])) & mask;
  if (op.immediate == ballot) {
    each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = votes; });
    return true;
  }
  const bool result = op.immediate == all   ? votes == mask
                      : op.immediate == any ? votes != 0
                                            : votes == 0 || votes == mask;
  warp.mask(op.d) = (warp.mask(op.d) & ~mask) | (result ? mask : 0);
  return true;
}

void decode_vote(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  const std::string mode = decoder.parts(instruction)[2];
  op.immediate = mode == "all" ? all : mode == "any" ? any : mode == "uni" ? uni : ballot;
  op.d = decoder.destination(instruction.operands[0], op.immediate == ballot ? Type::b32 : Type::pred);
  Operand voter = instruction.operands[1];
  op.third_negated = voter.negated;
  voter.negated = false;
  op.s[0] = decoder.source(voter, Type::pred);
  op.s[1] = decoder.source(instruction.operands[2], Type::b32);
  op.d_cell = op.immediate == ballot ? Cell::word : Cell::mask;
  op.source_count = 2;
}

/// match.any: lanes with my value; match.all: everyone if all values agree, else nobody.
bool match(Warp& warp, const Op& op, uint32_t mask) {
  if (!members_agree(warp, op, mask, op.s[1])) return false;
  const bool wide = op.type == Type::b64;
  auto value = [&](int lane) { return wide ? warp.wide(op.s[0])[lane] : warp.word(op.s[0])[lane]; };
  uint32_t result[32], agree = 0;
  each_lane(mask, [&](int lane) {
    result[lane] = 0;
    each_lane(mask, [&](int other) {
      result[lane] |= static_cast<uint32_t>(value(other) == value(lane)) << other;
    });
    if (op.immediate == all && result[lane] != mask) result[lane] = 0;
    agree |= static_cast<uint32_t>(result[lane] == mask) << lane;
  });
  each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = result[lane]; });
  if (op.d2 != no_slot) warp.mask(op.d2) = (warp.mask(op.d2) & ~mask) | agree;
  return true;
}

void decode_match(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  const std::vector<std::string>& words = decoder.parts(instruction);
  op.immediate = words[1] == "all" ? all : any;
  op.type = words.back() == "b64" ? Type::b64 : Type::b32;
  const Operand& to = instruction.operands[0];
  op.d = decoder.destination(to.kind == Operand::Kind::pair ? to.elements[0] : to, Type::b32);
  if (to.kind == Operand::Kind::pair) op.d2 = decoder.destination(to.elements[1], Type::pred);
  op.s[0] = decoder.source(instruction.operands[1], op.type);
  op.s[1] = decoder.source(instruction.operands[2], Type::b32);
  op.d_cell = Cell::word;
  op.source_count = 2;
}

template <class T, class F>
bool reduce(Warp& warp, const Op& op, uint32_t mask) {
  if (!members_agree(warp, op, mask, op.s[1])) return false;
  const uint32_t* values = warp.word(op.s[0]);
  auto total = static_cast<T>(values[std::countr_zero(mask)]);
  each_lane(mask & (mask - 1), [&](int lane) { total = F{}(total, static_cast<T>(values[lane])); });
  each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = static_cast<uint32_t>(total); });
  return true;
}

void decode_reduce(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  op.d = decoder.destination(instruction.operands[0], Type::b32);
  op.s[0] = decoder.source(instruction.operands[1], Type::b32);
  op.s[1] = decoder.source(instruction.operands[2], Type::b32);
  op.d_cell = Cell::word;
  op.source_count = 2;
}

bool active(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = mask; });
  return true;
}
void decode_active(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  op.d = decoder.destination(instruction.operands[0], Type::b32);
  op.d_cell = Cell::word;
}

/// elect.sync d|p, members: the lowest lane is elected.
bool elect(Warp& warp, const Op& op, uint32_t mask) {
  if (!members_agree(warp, op, mask, op.s[0])) return false;
  const int leader = std::countr_zero(mask);
  each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = static_cast<uint32_t>(leader); });
  if (op.d2 != no_slot) warp.mask(op.d2) = (warp.mask(op.d2) & ~mask) | (1u << leader);
  return true;
}
void decode_elect(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  const Operand& to = instruction.operands[0];
  op.d = decoder.destination(to.kind == Operand::Kind::pair ? to.elements[0] : to, Type::b32);
  if (to.kind == Operand::Kind::pair) op.d2 = decoder.destination(to.elements[1], Type::pred);
  op.s[0] = decoder.source(instruction.operands[1], Type::b32);
  op.d_cell = Cell::word;
  op.source_count = 1;
}

/// bar.warp.sync: in this model the warp's lanes are in step wherever it is legal.
bool warp_barrier(Warp& warp, const Op& op, uint32_t mask) {
  return members_agree(warp, op, mask, op.s[0]);
}
void decode_warp_barrier(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  op.s[0] = decoder.source(instruction.operands[0], Type::b32);
  op.source_count = 1;
}

template <class T, class F>
void add_reduction(std::vector<Row>& rows, const std::string& form, F) {
  add_warp_row(rows, "redux.sync." + form, {.flow = Flow::vote, .members = 1}, by_members<reduce<T, F>, 1>,
               decode_reduce);
}

}  // namespace

void add_exchange_rows(std::vector<Row>& rows) {
  const Meaning vote_by_1{.flow = Flow::vote, .members = 1};
  add_warp_row(rows, "shfl{,.sync}.{up,down,bfly,idx}.b32", {.flow = Flow::exchange, .members = 3},
               by_members<shuffle, 3>, decode_shuffle);
  add_warp_row(rows, "vote.sync.{all,any,uni}.pred", vote_by_1, by_members<vote, 1>, decode_vote);
  add_warp_row(rows, "vote.sync.ballot.b32", vote_by_1, by_members<vote, 1>, decode_vote);
  add_warp_row(rows, "match.{any,all}.sync.{b32,b64}", vote_by_1, by_members<match, 1>, decode_match);
  add_warp_row(rows, "activemask.b32", {.flow = Flow::vote}, active, decode_active);
  add_warp_row(rows, "elect.sync", {.flow = Flow::vote, .members = 0}, by_members<elect, 0>, decode_elect);
  add_warp_row(rows, "bar.warp.sync", {.operands = {Role::read}, .members = 0}, by_members<warp_barrier, 0>,
               decode_warp_barrier);
  add_reduction<uint32_t>(rows, "add.{u32,s32}", [](uint32_t a, uint32_t b) { return a + b; });
  add_reduction<uint32_t>(rows, "min.u32", [](uint32_t a, uint32_t b) { return a < b ? a : b; });
  add_reduction<uint32_t>(rows, "max.u32", [](uint32_t a, uint32_t b) { return a < b ? b : a; });
  add_reduction<int32_t>(rows, "min.s32", [](int32_t a, int32_t b) { return a < b ? a : b; });
  add_reduction<int32_t>(rows, "max.s32", [](int32_t a, int32_t b) { return a < b ? b : a; });
  add_reduction<uint32_t>(rows, "and.b32", [](uint32_t a, uint32_t b) { return a & b; });
  add_reduction<uint32_t>(rows, "or.b32", [](uint32_t a, uint32_t b) { return a | b; });
  add_reduction<uint32_t>(rows, "xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; });
}

}  // namespace assay::vm
