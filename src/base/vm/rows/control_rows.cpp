// Control flow, barriers and what has no effect on this machine (PTX ISA 9.7.12, 9.7.13). The engine runs
// their kinds.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/vm/decoder.h"
#include "src/base/vm/engine.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Type;

void decode_branch(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 1, 1);
  decoder.branch_to(op, instruction.operands[0]);
}

void decode_branch_table(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  op.s[0] = decoder.source(instruction.operands[0], Type::u32);
  op.source_count = 1;
  decoder.branch_table(op, instruction.operands[1]);
}

void decode_call(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.call(instruction, op);
}
void decode_plain(Decoder& decoder, const ptx::Instruction& instruction, Op&) {
  decoder.expect_operands(instruction, 0, 0);
}
void decode_anything(Decoder&, const ptx::Instruction&, Op&) {}

/// bar{rier}.{sync,arrive} a{, b}; bar.red.op d, a{, b}, {!}c. s[0] barrier, s[1] threads, s[2] vote.
void decode_barrier(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  std::vector<Operand> operands = instruction.operands;
  op.immediate = words[1] == "arrive" ? barrier_arrive : barrier_sync;
  if (words[1] == "red") {
    decoder.expect_operands(instruction, 3, 4);
    op.immediate = words[2] == "popc" ? barrier_popc : words[2] == "and" ? barrier_and : barrier_or;
    op.d = decoder.destination(operands.front(), op.immediate == barrier_popc ? Type::u32 : Type::pred);
    op.d_cell = op.immediate == barrier_popc ? Cell::word : Cell::mask;
    Operand vote = operands.back();
    op.third_negated = vote.negated;
    vote.negated = false;
    op.s[2] = decoder.source(vote, Type::pred);
    operands = {operands.begin() + 1, operands.end() - 1};
  }
  if (operands.empty() || operands.size() > 2)
    decoder.fail(instruction, "takes a barrier and perhaps a number of threads");
  op.s[0] = decoder.source(operands[0], Type::u32);
  if (operands.size() == 2) op.s[1] = decoder.source(operands[1], Type::u32);
  op.source_count = 3;
}

void decode_cluster_barrier(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 0, 0);
  op.immediate = instruction.form.operation == ptx::Operation::barrier_cluster_wait ? barrier_cluster_wait
                                                                                    : barrier_cluster_arrive;
}

/// The call's arguments are copied by the engine; this copies results after the return.
bool copy_results(Warp& warp, const Op& op, uint32_t mask) {
  copy_local(warp, op, mask);
  return true;
}

/// Before an indirect call: every lane's address is one of Op::slots (offsets from function_base).
bool check_target(Warp& warp, const Op& op, uint32_t mask) {
  const uint64_t* address = warp.wide(op.s[0]);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Slot* end = op.slots + op.slot_count;
    if (std::find(op.slots, end, address[lane] - function_base) == end)
      return raise(
          warp, op, lane, TrapKind::call,
          fmt::format("{:#x} is the address of no function with these parameters (nor may it lead back here: "
                      "recursion is not supported)",
                      address[lane]));
  }
  return true;
}

/// The text at a generic address, up to its end or 200 characters; empty where nothing is allocated.
std::string text_at(const Memory& memory, uint64_t address) {
  const int found = memory.find(address, 1);
  if (found < 0) return "";
  const Allocation& from = memory.allocations()[static_cast<size_t>(found)];
  const auto* begin = reinterpret_cast<const char*>(from.data + (address - from.base));
  return std::string(begin, strnlen(begin, std::min<uint64_t>(from.bytes - (address - from.base), 200)));
}

/// __assertfail: ends the run with the assertion's own words.
bool fail_assertion(Warp& warp, const Op& op, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const LaunchContext& context = *warp.block->context;
  const std::byte* local = warp.local.data() + static_cast<uint64_t>(lane) * context.code->local_bytes;
  auto word = [&](int argument) {
    uint64_t value;
    std::memcpy(&value, local + op.slots[argument], sizeof value);
    return value;
  };
  uint32_t line;
  std::memcpy(&line, local + op.slots[2], sizeof line);
  return raise(warp, op, lane, TrapKind::assertion,
               fmt::format("assertion failed: {} ({}:{}, {})", text_at(*context.memory, word(0)),
                           text_at(*context.memory, word(1)), line, text_at(*context.memory, word(3))));
}

}  // namespace

void copy_local(Warp& warp, const Op& op, uint32_t mask) {
  const uint64_t size = warp.block->context->code->local_bytes;
  for (uint32_t i = 0; i + 2 < op.slot_count; i += 3)
    each_lane(mask, [&](int lane) {
      std::byte* base = warp.local.data() + static_cast<uint64_t>(lane) * size;
      std::memmove(base + op.slots[i + 1], base + op.slots[i], op.slots[i + 2]);
    });
}

void add_control_rows(std::vector<Row>& rows) {
  const auto add = [&](const char* pattern, Kind kind, std::vector<Role> operands, DecodeFunction decode,
                       Asynchronous asynchronous = {}) {
    add_warp_row(rows, pattern, {.operands = std::move(operands), .asynchronous = asynchronous}, nullptr,
                 decode)
        .kind = kind;
  };
  const std::vector<Role> none{Role::none}, all_read{Role::read};
  add("bra", Kind::branch, none, decode_branch);
  add("brx.idx", Kind::branch_table, {Role::read, Role::none}, decode_branch_table);
  add("call", Kind::call, all_read, decode_call);
  add_warp_row(rows, "call results", {.flow = Flow::parameters}, copy_results, decode_anything);
  add_warp_row(rows, "call target", {}, check_target, decode_anything);
  add_warp_row(rows, "call assertion", {}, fail_assertion, decode_anything);
  add("ret", Kind::ret, none, decode_plain);
  add("exit", Kind::exit, none, decode_plain);
  add("trap", Kind::trap, none, decode_plain);
  add("barrier.cluster.{arrive,wait}", Kind::barrier, none, decode_cluster_barrier);
  add("{bar,barrier}.{sync,arrive}", Kind::barrier, all_read, decode_barrier);
  add("{bar,barrier}.red.{popc.u32,and.pred,or.pred}", Kind::barrier, {Role::write, Role::read},
      decode_barrier);
  add("{membar,membar.gl,fence,fence.mbarrier_init,fence.proxy.alias}", Kind::nothing, none, decode_anything,
      {.step = Step::fence});
  add("fence.proxy.tensormap::generic", Kind::nothing, {Role::read}, decode_anything, {.step = Step::fence});
  add("fence.proxy.async{,.shared,.global}", Kind::nothing, none, decode_anything,
      {.step = Step::fence, .proxy = Proxy::async});
  add("{nanosleep.u32,brkpt,pmevent,pmevent.mask,griddepcontrol.wait,griddepcontrol.launch_dependents}",
      Kind::nothing, all_read, decode_anything);
  add("setmaxnreg.{inc,dec}.sync.aligned.u32", Kind::nothing, none, decode_anything);
}

}  // namespace assay::vm
