// cp.async.bulk and cp.reduce.async.bulk (PTX ISA 9.7.9.25.4): plain bytes; and what waits for bulk groups.
// Copies of tensors: tensor_copy_rows.cpp.
#include <fmt/format.h>

#include "src/base/vm/bulk_copy.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/rows/bulk_combine.h"
#include "src/base/vm/rows/bulk_operands.h"
#include "src/base/vm/rows/bulk_places.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Combine;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// The first byte from `address` on that is of no allocation.
uint64_t first_outside(const Warp& warp, uint64_t address) {
  const Memory& memory = *warp.block->context->memory;
  const int found = memory.find(address, 1);
  if (found < 0) return address;
  const Allocation& a = memory.allocations()[static_cast<size_t>(found)];
  return a.base + a.bytes;
}

/// The bytes of one copy, to one block.
bool copy_bytes(Warp& warp, const Op& op, int lane, uint64_t to, uint64_t from, uint32_t bytes,
                BulkCopy&& copy) {
  const BulkForm form = BulkForm::of(op.immediate);
  const BulkSide source = bulk_side(warp, op, form.from_shared, from, bytes, false),
                 target = bulk_side(warp, op, form.to_shared, to, bytes, copy.barrier != no_shared);
  for (const BulkSide* side : {&source, &target}) {
    const bool is_source = side == &source;
    const uint64_t address = is_source ? from : to;
    const bool shared = is_source ? form.from_shared : form.to_shared;
    if (!side->found)
      return bad_access(warp, op, lane, shared ? address : first_outside(warp, address), bytes,
                        shared ? Space::shared : Space::global, false);
    if (side->address % 16 != 0)
      return bad_access(warp, op, lane, address, 16, shared ? Space::shared : Space::global, true);
  }
  each_run(source, target, bytes, [&](uint64_t at, uint32_t run) {
    copy.pieces.push_back({BulkPiece::What::copy, run, target.address + at, source.address + at,
                           target.host(at), source.host(at)});
  });
  return issue_bulk(warp, std::move(copy));
}

bool copy_bulk(Warp& warp, const Op& op, uint32_t mask) {
  const BulkForm form = BulkForm::of(op.immediate);
  warp.block->first_new = warp.block->issued + 1;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint32_t bytes = warp.word(op.slots[bulk_size])[lane];
    if (bytes % 16 != 0)
      return raise(warp, op, lane, TrapKind::misaligned,
                   fmt::format("bulk copies move multiples of 16 bytes, not {}", bytes));
    const uint64_t to = bulk_address(warp, op.slots[bulk_to], form.to_wide, lane) +
                        static_cast<uint64_t>(op.offset),
                   from = bulk_address(warp, op.slots[bulk_from], form.from_wide, lane) +
                          static_cast<uint64_t>(op.offset2);
    const bool done = each_target(warp, op, lane, to, bytes, [&](uint64_t target, BulkCopy&& copy) {
      copy.from_space = form.from_shared ? Space::shared : Space::global;
      return copy_bytes(warp, op, lane, target, from, bytes, std::move(copy));
    });
    if (!done) return false;
  }
  return true;
}

/// cp{.reduce}.async.bulk.to.from.completion{...} [to], [from], size{, [mbar]}{, mask}{, policy}
void decode_bulk_copy(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  BulkOperands operands(decoder, instruction, op);
  const size_t first = words[1] == "reduce" ? 4 : 3;
  BulkForm& form = operands.form;
  form.to_shared = words[first] == "shared", form.from_shared = words[first + 1] == "shared";
  operands.address(bulk_to, form.to_wide, op.offset);
  operands.address(bulk_from, form.from_wide, op.offset2);
  operands.value(bulk_size, Type::u32);
  operands.completion();
  form.combine = instruction.form.combine;
  op.type = instruction.form.type();
  operands.finish();
}

/// cp.async.bulk.prefetch.L2.global [from], size: no value changes.
void decode_bulk_prefetch(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 3);
  op.kind = Kind::nothing;
}

bool commit_bulk(Warp& warp, const Op&, uint32_t mask) {
  warp.bulk.commit(mask);
  return true;
}
void decode_bulk_commit(Decoder& decoder, const ptx::Instruction& instruction, Op&) {
  decoder.expect_operands(instruction, 0, 0);
}

/// wait_group.read asks only that sources have been read; that the bytes have arrived too is one of the
/// orders that hardware may choose.
bool wait_bulk(Warp& warp, const Op& op, uint32_t mask) {
  wait_for_bulk_groups(warp, mask, op.immediate);
  return true;
}
void decode_bulk_wait(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  op.immediate = decoder.constant(instruction.operands[0]);
}

}  // namespace

void add_bulk_copy_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& form, Completion completion) {
    add_warp_row(rows, form,
                 {.flow = Flow::copy_bulk,
                  .operands = {Role::store_to, Role::load_from, Role::read},
                  .asynchronous = {completion, Step::issue, Proxy::async}},
                 copy_bulk, decode_bulk_copy);
  };
  const std::string of_group = "global.shared.bulk_group",
                    at_barrier = "shared.shared.mbarrier::complete_tx::bytes";
  add("cp.async.bulk.shared.global.mbarrier::complete_tx::bytes{,.multicast::cluster}", Completion::mbarrier);
  add("cp.async.bulk." + at_barrier, Completion::mbarrier);
  add("cp.async.bulk." + of_group, Completion::bulk_group);
  for (const char* what :
       {"add.{u32,s32,u64}", "{min,max}.{u32,s32,u64,s64}", "{inc,dec}.u32", "{and,or,xor}.{b32,b64}"})
    for (const bool group : {false, true}) {
      const bool wide_shared = std::string_view(what).find("{min") == 0 && !group;
      add("cp.reduce.async.bulk." + (group ? of_group : at_barrier) + "." +
              (wide_shared ? "{min,max}.{u32,s32}" : what),
          group ? Completion::bulk_group : Completion::mbarrier);
    }
  add("cp.reduce.async.bulk." + of_group + ".{add,min,max}.{f16,bf16}", Completion::bulk_group);
  add("cp.reduce.async.bulk." + of_group + ".add.{f32,f64}", Completion::bulk_group);
  const auto control = [&](const char* form, Step step, WarpFunction function, DecodeFunction decode) {
    add_warp_row(rows, form,
                 {.operands = {Role::none}, .asynchronous = {Completion::bulk_group, step, Proxy::async}},
                 function, decode);
  };
  control("cp.async.bulk.commit_group", Step::commit, commit_bulk, decode_bulk_commit);
  control("cp.async.bulk.wait_group{,.read}", Step::wait, wait_bulk, decode_bulk_wait);
  add_warp_row(rows, "cp.async.bulk.prefetch.L2.global", {.operands = {Role::read}}, nullptr,
               decode_bulk_prefetch);
}

}  // namespace assay::vm
