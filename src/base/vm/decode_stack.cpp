// The stack that alloca takes memory from: a piece of each thread's local memory, and a cell that says where
// it ends. What a called function took is given back where it returns.
#include <algorithm>

#include "src/base/vm/decoder.h"

namespace assay::vm {
namespace {

constexpr int64_t allocated_bytes = 32 << 10;  // per thread; CUDA's own default of all of a stack is 1 KiB

}  // namespace

bool Decoder::allocates(int32_t function) const {
  const std::vector<ptx::Instruction>& body = module_->functions[static_cast<size_t>(function)].body;
  return std::any_of(body.begin(), body.end(), [](const ptx::Instruction& instruction) {
    return instruction.form.operation == ptx::Operation::alloca;
  });
}

/// Behind what else lies in local memory; returns the bytes of all.
int64_t Decoder::lay_out_stack(const std::vector<int32_t>& functions, int64_t local) {
  if (std::none_of(functions.begin(), functions.end(), [&](int32_t f) { return allocates(f); })) return local;
  allocated_ = (local + 15) / 16 * 16;
  code_->local_areas.push_back({"what alloca took", static_cast<uint32_t>(allocated_), allocated_bytes});
  stack_end_ = new_cell(Cell::wide);
  return allocated_ + allocated_bytes;
}

Slot Decoder::stack_end() {
  if (stack_end_ == no_slot) fail("names a stack that no alloca takes memory from");
  if (has_frames(function_)) fail("takes memory from the stack in a function that leads to itself");
  return stack_end_;
}

void Decoder::move_stack_end(Slot to, Slot from) {
  Op move;
  move.row = find_row("mov.u64");
  move.kind = move.row->kind, move.lanes = move.row->lanes;
  move.function = function_;
  move.d = to, move.d_cell = Cell::wide;
  move.s[0] = from, move.source_count = 1;
  emit(move);
  note_forms(nullptr, nullptr);
}

/// In front of the entry its beginning; of a called function that allocates, where it ended.
void Decoder::begin_stack() {
  stack_before_ = no_slot;
  if (stack_end_ == no_slot) return;
  if (here().entry) return move_stack_end(stack_end_, wide_constant(static_cast<uint64_t>(allocated_)));
  if (allocates(function_)) move_stack_end(stack_before_ = new_cell(Cell::wide), stack_end_);
}

void Decoder::end_stack() {
  if (stack_before_ != no_slot) move_stack_end(stack_end_, stack_before_);
}

}  // namespace assay::vm
