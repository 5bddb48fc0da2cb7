// cp.async (PTX ISA 9.7.9.25): the data are taken from global memory at issue and written to shared memory
// only at the wait that covers them, so that a missing wait is seen as the old contents.
#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr size_t most_copies = 4096;

bool copy_async(Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t bytes = op.element_bytes;
  if (warp.copies.in_flight().size() == most_copies)
    return raise(warp, op, std::countr_zero(mask), TrapKind::unsupported,
                 "4096 cp.async of the warp are in flight: cp.async.wait_group is missing");
  std::byte* host[32];
  lane_addresses(warp, op.s[1], op.address2_wide, op.offset2, warp.address);
  if (!translate_at(warp, op, mask, bytes, Space::shared, host)) return false;
  std::memcpy(warp.address2, warp.address, sizeof warp.address);
  // Source: only the bytes that are read need exist.
  uint32_t copied[32];
  const bool ignored_form = op.s[3] != no_slot;
  const uint32_t ignored = ignored_form ? warp.mask(op.s[3]) : 0;
  uint32_t reading = 0;
  each_lane(mask, [&](int lane) {
    copied[lane] = op.s[2] == no_slot ? bytes : std::min(bytes, warp.word(op.s[2])[lane]);
    if ((ignored >> lane) & 1) copied[lane] = 0;
    if (copied[lane]) reading |= 1u << lane;
  });
  lane_addresses(warp, op.s[0], op.address_wide, op.offset, warp.address);
  warp.space = Space::global;
  bool uniform = true;
  each_lane(reading, [&](int lane) { uniform &= copied[lane] == bytes; });
  if (uniform) {
    if (!translate_at(warp, op, reading, bytes, Space::global, host)) return false;
  } else {
    // A shorter read still needs the alignment of the whole.
    for (uint32_t rest = reading; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (!translate_part(warp, op, lane, copied[lane], bytes, host)) return false;
    }
  }
  AsyncCopy& copy = warp.copies.issue(op, mask);
  copy.bytes = bytes;
  each_lane(mask, [&](int lane) {
    copy.shared[lane] = static_cast<uint32_t>(warp.address2[lane]);
    copy.copied[lane] = copied[lane];
    copy.global[lane] = warp.address[lane];
    std::byte* to = copy.data + lane * 16;
    std::memset(to, 0, 16);
    if (copied[lane]) std::memcpy(to, host[lane], copied[lane]);
  });
  return true;
}

/// cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size | ignore-src}{, policy};
void decode_copy(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 5);
  op.space = Space::shared;
  for (size_t i = 0; i < 2; ++i)
    if (instruction.operands[i].kind != Operand::Kind::address)
      decoder.fail(instruction, "expected an address in brackets");
  std::tie(op.s[1], op.offset2) = decoder.second_address(instruction.operands[0], &op.address2_wide);
  op.space = Space::global;
  std::tie(op.s[0], op.offset) = decoder.second_address(instruction.operands[1], &op.address_wide);
  op.element_bytes = static_cast<uint8_t>(decoder.constant(instruction.operands[2]));
  if (op.element_bytes != 4 && op.element_bytes != 8 && op.element_bytes != 16)
    decoder.fail(instruction, "copies 4, 8 or 16 bytes");
  op.type = Type::b8;
  op.source_count = 2;
  const size_t count = instruction.operands.size() - (instruction.form.cache_hint ? 1 : 0);
  if (count <= 3) return;
  Operand fourth = instruction.operands[3];
  if (fourth.kind == Operand::Kind::reg && decoder.register_cell(fourth).second == Cell::mask)
    op.s[3] = decoder.source(fourth, Type::pred);
  else
    op.s[2] = decoder.source(fourth, Type::u32);
  op.source_count = 4;
}

bool commit(Warp& warp, const Op&, uint32_t mask) {
  warp.copies.commit(mask);
  return true;
}

void decode_plain(Decoder& decoder, const ptx::Instruction& instruction, Op&) {
  decoder.expect_operands(instruction, 0, 0);
}

void decode_wait_group(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  op.immediate = decoder.constant(instruction.operands[0]);
}
void decode_wait_all(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 0, 0);
  op.immediate = ~uint64_t{0};
}

}  // namespace

void add_async_copy_rows(std::vector<Row>& rows) {
  const auto step = [](Step step) {
    return Meaning{.operands = {Role::none}, .asynchronous = {Completion::copy_group, step}};
  };
  Meaning copy = step(Step::issue);
  copy.flow = Flow::copy_async;
  copy.operands = {Role::store_to, Role::load_from, Role::none, Role::read};
  add_warp_row(rows, "cp.async.shared.global", copy, copy_async, decode_copy);
  add_warp_row(rows, "cp.async.commit_group", step(Step::commit), commit, decode_plain);
  add_warp_row(rows, "cp.async.wait_group", step(Step::wait), nullptr, decode_wait_group).kind =
      Kind::async_wait;
  add_warp_row(rows, "cp.async.wait_all", step(Step::wait), nullptr, decode_wait_all).kind = Kind::async_wait;
}

}  // namespace assay::vm
