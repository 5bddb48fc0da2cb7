// Functions that lead to themselves: their variables, parameters and, during calls, registers lie in
// frames of a stack in each thread's local memory, which ops made here keep like any program's own.
#include "src/base/vm/decoder.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Type;

/// A variable or parameter of the current function that lies in its frame.
bool Decoder::is_framed(const Operand& operand) const {
  if (!has_frames(function_)) return false;
  if (operand.parameter >= 0) return true;
  const auto local = operand.symbol - static_cast<int32_t>(module_->variables.size());
  return operand.symbol >= 0 && local >= 0 &&
         here().variables[static_cast<size_t>(local)].space != ptx::Space::shared;
}

/// Appends the sum that is its address.
Slot Decoder::frame_address(const Operand& operand) {
  Op sum;
  sum.row = find_row("add.u64");
  sum.kind = sum.row->kind, sum.lanes = sum.row->lanes;
  sum.function = function_;
  sum.instruction = static_cast<int32_t>(current_ - here().body.data());
  sum.d = new_cell(Cell::wide), sum.d_cell = Cell::wide;
  sum.s[0] = frame_;
  sum.s[1] = constant_slot(symbol_value(operand) + static_cast<uint64_t>(operand.offset), Cell::wide);
  sum.source_count = 2;
  emit(sum);
  return sum.d;
}

/// In front of the entry: the first frame's address.
void Decoder::begin_frames() {
  if (frame_bytes_.empty()) return;
  frame_ = new_cell(Cell::wide);
  Op move;
  move.row = find_row("mov.u64");
  move.kind = move.row->kind, move.lanes = move.row->lanes;
  move.function = function_;
  move.d = frame_, move.d_cell = Cell::wide;
  move.s[0] = constant_slot(static_cast<uint64_t>(stack_), Cell::wide);
  move.source_count = 1;
  emit(move);
  note_forms(nullptr, nullptr);
}

/// A load or store of a cell, at an offset in the current frame or in local memory.
Op Decoder::local_access(const Op& like, const char* form, Slot cell, bool framed, int64_t offset) const {
  Op made = like;
  made.row = find_row(form);
  made.kind = made.row->kind;
  made.space = ptx::Space::local;
  made.type = *ptx::type_named(std::string_view(form).substr(std::string_view(form).rfind('.') + 1));
  made.element_bytes = static_cast<uint8_t>(ptx::bytes_of(made.type));
  made.vector_length = 1;
  made.immediate = made.element_bytes == 8;
  made.offset = offset;
  made.s[0] = framed ? frame_ : no_slot;
  made.d = cell;  // until the caller has set the slots
  return made;
}

namespace {

/// Bytes of a piece of a parameter: all its bytes, in accesses that its place is aligned to.
int64_t piece_of(int64_t from, int64_t to, int64_t left) {
  for (const int64_t bytes : {8, 4, 2})
    if (left >= bytes && from % bytes == 0 && to % bytes == 0) return bytes;
  return 1;
}

const char* form_of(bool loads, int64_t bytes) {
  switch (bytes) {
    case 8:
      return loads ? "ld.local.b64" : "st.local.b64";
    case 4:
      return loads ? "ld.local.b32" : "st.local.b32";
    case 2:
      return loads ? "ld.local.b16" : "st.local.b16";
    default:
      return loads ? "ld.local.b8" : "st.local.b8";
  }
}

}  // namespace

/// (from, to, bytes) between the caller's variables and the callee's parameters, each in its own frame
/// where it has any.
void Decoder::copy_frames(const Op& like, const std::vector<Slot>& triples, bool to_callee, int32_t callee,
                          std::vector<Op>& made) {
  const int64_t behind = has_frames(function_) ? frame_bytes_.at(function_) : 0;
  const auto add = [&](bool loads, bool of_callee, int64_t at, int64_t bytes, Slot cell) {
    const bool framed = has_frames(of_callee ? callee : function_);
    Op op = local_access(like, form_of(loads, bytes), cell, framed, at + (of_callee && framed ? behind : 0));
    if (!framed) op.s[0] = constant_slot(0, Cell::wide);
    op.source_count = 1;
    op.d = no_slot, op.d_cell = Cell::none;
    set_slots(op, {cell}, loads ? 1 : 0);
    made.push_back(op);
  };
  for (size_t i = 0; i + 2 < triples.size(); i += 3)
    for (int64_t at = 0, bytes = 0; at < triples[i + 2]; at += bytes) {
      const int64_t from = int64_t{triples[i]} + at, to = int64_t{triples[i + 1]} + at;
      bytes = piece_of(from, to, int64_t{triples[i + 2]} - at);
      const Slot cell = new_cell(bytes == 8 ? Cell::wide : Cell::word);
      add(true, !to_callee, from, bytes, cell);
      add(false, to_callee, to, bytes, cell);
    }
}

/// The caller's registers into its frame, or back; predicates as words. Of all lanes that are here:
/// those that the call leaves out keep what they have.
void Decoder::keep_registers(const Op& like, bool restore, std::vector<Op>& made) {
  Op all = like;
  all.guarded = false, all.guard = no_slot;
  int64_t at = kept_registers_.at(function_);
  const auto add = [&](Slot cell, int64_t bytes) {
    Op op = local_access(all, form_of(restore, bytes), cell, true, at);
    op.source_count = 1;
    op.d = no_slot, op.d_cell = Cell::none;
    set_slots(op, {cell}, restore ? 1 : 0);
    made.push_back(op);
    at += 8;
  };
  for (size_t r = 0; r < here().registers.size(); ++r) {
    const Type type = here().registers[r].type;
    const Slot slot = register_slot(static_cast<int32_t>(r));
    if (type == Type::b128) {
      add(slot, 8), add(slot + 256, 8);
      continue;
    }
    if (type != Type::pred) {
      add(slot, cell_of(type) == Cell::wide ? 8 : 4);
      continue;
    }
    const Slot word = scratch_word();
    Op change = all;
    change.row = find_row(restore ? "setp.ne.u32" : "selp.b32");
    change.kind = change.row->kind, change.lanes = change.row->lanes;
    change.d = restore ? slot : word, change.d_cell = restore ? Cell::mask : Cell::word;
    change.s[0] = restore ? word : constant_slot(1, Cell::word);
    change.s[1] = constant_slot(0, Cell::word);
    if (!restore) change.s[2] = slot;
    change.source_count = restore ? 2 : 3;
    if (!restore) made.push_back(change);
    add(word, 4);
    if (restore) made.push_back(change);
  }
}

/// Past the caller's frame, or back.
void Decoder::move_frame(const Op& like, const char* form, std::vector<Op>& made) {
  Op sum = like;
  sum.guarded = false, sum.guard = no_slot;
  sum.row = find_row(form);
  sum.kind = sum.row->kind, sum.lanes = sum.row->lanes;
  sum.d = frame_, sum.d_cell = Cell::wide;
  sum.s[0] = frame_;
  sum.s[1] = constant_slot(static_cast<uint64_t>(frame_bytes_.at(function_)), Cell::wide);
  sum.source_count = 2;
  made.push_back(sum);
}

/// `op` becomes the last of the ops.
void Decoder::call_with_frames(const std::vector<Slot>& arguments, const std::vector<Slot>& results,
                               int32_t callee, Op& op) {
  const bool framed = has_frames(function_),
             comes_back = framed && call_graph_.is_recursive(function_, callee);
  std::vector<Op> made;
  if (comes_back) keep_registers(op, false, made);
  copy_frames(op, arguments, true, callee, made);
  if (framed) move_frame(op, "add.u64", made);
  const size_t call = made.size();
  made.push_back(op);
  if (framed) move_frame(op, "sub.u64", made);
  if (comes_back) keep_registers(op, true, made);
  copy_frames(op, results, false, callee, made);
  call_fixups_.emplace_back(code_->ops.size() + call, callee);
  pending_functions_.push_back(callee);
  op = made.back();
  made.pop_back();
  for (const Op& each : made) emit(each);
}

}  // namespace assay::vm
