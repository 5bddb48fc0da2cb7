// Entry -> ops: functions, instructions and branch targets.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/form.h"
#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/unsure_registers.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Type;

Cell cell_of(Type type) {
  if (type == Type::none) return Cell::none;
  if (type == Type::pred) return Cell::mask;
  return ptx::bytes_of(type) == 8 ? Cell::wide : Cell::word;
}

std::shared_ptr<const Code> lay_out(std::shared_ptr<const ptx::Module> module, int32_t index) {
  return Decoder(std::move(module), index).lay_out();
}

std::shared_ptr<const Code> decode(std::shared_ptr<const ptx::Module> module, const std::string& name,
                                   const std::map<std::string, uint64_t>& places) {
  for (size_t i = 0; i < module->functions.size(); ++i) {
    const ptx::Function& function = module->functions[i];
    if (function.name == name && function.entry && function.defined)
      return Decoder(module, static_cast<int32_t>(i), places).decode();
  }
  std::string known;
  for (const ptx::Function& function : module->functions)
    if (function.entry) known += (known.empty() ? "" : ", ") + function.name;
  throw BadInput(module->path + ": no entry " + name +
                 "; the module has: " + (known.empty() ? "none" : known));
}

Decoder::Decoder(std::shared_ptr<const ptx::Module> module, int32_t entry,
                 const std::map<std::string, uint64_t>& places)
    : module_(std::move(module)), call_graph_(*module_), code_(std::make_shared<Code>()) {
  code_->module = module_;
  code_->entry = entry;
  code_->variables = variable_addresses(*module_, places);
  function_start_.assign(module_->functions.size(), -1);
  registers_.resize(module_->functions.size());
}

std::shared_ptr<const Code> Decoder::lay_out() {
  lay_out_memory();
  return code_;
}

std::shared_ptr<const Code> Decoder::decode() {
  lay_out_memory();
  pending_functions_.push_back(code_->entry);
  while (!pending_functions_.empty()) {
    const int32_t next = pending_functions_.back();
    pending_functions_.pop_back();
    if (function_start_[static_cast<size_t>(next)] < 0) function(next);
  }
  for (const auto& [op, callee] : call_fixups_)
    code_->ops[op].target = function_start_[static_cast<size_t>(callee)];
  relocate_constants();
  resolve_signatures();
  code_->unsure = unsure_registers(*code_);
  code_->spins = std::any_of(code_->ops.begin(), code_->ops.end(), [&](const Op& op) { return spins(op); });
  return code_;
}

namespace {

/// An atomic that asks for a value in place of a load: it adds zero, or changes no bit.
bool only_asks(const Code& code, const Op& op, ptx::Combine combine) {
  const bool with_zero =
      combine == ptx::Combine::add || combine == ptx::Combine::or_ || combine == ptx::Combine::xor_;
  return with_zero && op.d != no_slot &&
         std::any_of(code.immediates.begin(), code.immediates.end(), [&](const Immediate& constant) {
           return constant.slot == op.s[1] && constant.bits == 0;
         });
}

}  // namespace

/// A branch back over what reads another thread's writes.
bool Decoder::spins(const Op& branch) const {
  const auto at = static_cast<int32_t>(code_->index(branch));
  if (branch.kind != Kind::branch || branch.target < 0 || branch.target > at) return false;
  return std::any_of(code_->ops.begin() + branch.target, code_->ops.begin() + at, [&](const Op& op) {
    const Signature& s = code_->signature(op);
    if (s.flow() == Flow::atomic)
      return s.form.combine == ptx::Combine::cas || s.form.combine == ptx::Combine::exch ||
             only_asks(*code_, op, s.form.combine);
    return s.flow() == Flow::load && s.form.order != ptx::Order::none && s.form.order != ptx::Order::weak;
  });
}

void Decoder::function(int32_t index) {
  function_ = index;
  const ptx::Function& made = here();
  if (!made.refused.empty()) throw BadInput(made.refused);
  const size_t begin = code_->ops.size();
  function_start_[static_cast<size_t>(index)] = static_cast<int32_t>(begin);
  first_op_.assign(made.body.size() + 1, 0);
  fixups_.clear();
  code_->ops.reserve(begin + made.body.size() + 1);
  forms_.reserve(code_->ops.capacity());
  if (index == code_->entry) begin_frames();
  begin_stack();
  for (size_t i = 0; i < made.body.size(); ++i) {
    first_op_[i] = static_cast<int32_t>(code_->ops.size());
    instruction(made.body[i], static_cast<int32_t>(i));
  }
  first_op_[made.body.size()] = static_cast<int32_t>(code_->ops.size());
  end_stack();
  Op end;  // falling off the end, and the common return of a called function
  end.row = find_row(made.entry ? "exit" : "ret");
  end.kind = made.entry ? Kind::exit : Kind::ret;
  end.function = index;
  code_->ops.push_back(end);
  note_forms(nullptr, nullptr);
  resolve_branches();
  find_reconvergence(*code_, begin, code_->ops.size());
}

void Decoder::instruction(const ptx::Instruction& instruction, int32_t index) {
  current_ = &instruction;
  const Row* row = find_row(instruction);
  if (!row) refuse(instruction);
  Op op;
  op.row = row;
  op.kind = row->kind;
  op.lanes = row->lanes;
  op.function = function_;
  op.instruction = index;
  op.d_cell = cell_of(row->result);
  op.in_cluster = instruction.form.in_cluster;
  if (instruction.predicate >= 0) {
    op.guarded = true;
    op.guard_negated = instruction.predicate_negated;
    op.guard = register_slot(instruction.predicate);
    if (here().registers[static_cast<size_t>(instruction.predicate)].type != Type::pred)
      fail("the guard is no predicate");
  }
  if (row->decode)
    row->decode(*this, instruction, op);
  else if (op.kind == Kind::compare)
    compare_operands(instruction, *row, op);
  else
    plain_operands(instruction, *row, op);
  if (op.kind == Kind::exponential) {
    op.exponential = static_cast<int32_t>(code_->exponentials.size());
    code_->exponentials.push_back(static_cast<int32_t>(code_->ops.size()));
  }
  if (op.kind == Kind::ret) {
    if (here().entry) {
      op.kind = Kind::exit;
    } else {
      op.kind = Kind::branch;
      fixups_.push_back({code_->ops.size(), static_cast<int32_t>(here().body.size()), -1});
    }
  }
  if (op.kind == Kind::call) code_->ops.reserve(code_->ops.size() + 1);
  code_->ops.push_back(op);
  note_forms(&instruction, row);
}

/// The table has no such form: is it another form of an instruction, an instruction, or none?
void Decoder::refuse(const ptx::Instruction& instruction) const {
  static const std::set<std::string, std::less<>> implemented = [] {
    std::set<std::string, std::less<>> bases;
    for (const Row& row : rows())
      for (const std::string& form : forms_of(row)) bases.emplace(ptx::base_of(form));
    return bases;
  }();
  const std::string base(ptx::base_of(instruction.opcode));
  if (implemented.contains(base)) fail(instruction, "the machine does not implement this form of " + base);
  if (ptx::is_instruction_name(base)) fail(instruction, "the machine does not implement " + base);
  fail(instruction, "PTX has no instruction " + base);
}

void Decoder::plain_operands(const ptx::Instruction& instruction, const Row& row, Op& op) {
  size_t count = 0;
  while (count < 4 && row.sources[count] != Type::none) ++count;
  const size_t destinations = row.result != Type::none ? 1 : 0;
  expect_operands(instruction, destinations + count, destinations + count);
  if (destinations) op.d = destination(instruction.operands[0], row.result);
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = instruction.operands[destinations + i];
    op.s[i] = row.flow == Flow::conversion && is_too_wide(operand, row.sources[i])
                  ? low_word(operand, op)
                  : source(operand, row.sources[i]);
  }
  op.source_count = static_cast<uint8_t>(count);
}

/// cvt may read an integer from a register wider than its source type (PTX ISA 9.4.1).
bool Decoder::is_too_wide(const Operand& operand, Type type) {
  return operand.kind == Operand::Kind::reg && cell_of(type) == Cell::word &&
         ptx::name_of(type).front() != 'f' && register_cell(operand).second == Cell::wide;
}

/// Appends the copy of a wide register's low half to a cell of its own.
Slot Decoder::low_word(const Operand& operand, const Op& user) {
  Op copy = user;
  copy.row = find_row("cvt.u32.u64");
  copy.kind = copy.row->kind;
  copy.lanes = copy.row->lanes;
  copy.d_cell = Cell::word;
  copy.s[0] = register_slot(operand.reg);
  copy.d = scratch_word();
  copy.source_count = 1;
  emit(copy);
  return copy.d;
}

/// setp.cmp{.bool} p{|q}, a, b{, {!}c};  testp p, a;
void Decoder::compare_operands(const ptx::Instruction& instruction, const Row& row, Op& op) {
  const std::vector<std::string>& words = parts(instruction);
  for (const std::string& word : words) {
    if (word == "and") op.boolean = BooleanOp::land;
    if (word == "or") op.boolean = BooleanOp::lor;
    if (word == "xor") op.boolean = BooleanOp::lxor;
  }
  const size_t compared = row.sources[1] != Type::none ? 2 : 1;
  const size_t count = 1 + compared + (op.boolean != BooleanOp::none);
  expect_operands(instruction, count, count);
  const Operand& to = instruction.operands[0];
  if (to.kind == Operand::Kind::pair) {
    op.d = destination(to.elements[0], Type::pred);
    op.d2 = destination(to.elements[1], Type::pred);
  } else {
    op.d = destination(to, Type::pred);
  }
  for (size_t i = 0; i < compared; ++i) op.s[i] = source(instruction.operands[1 + i], row.sources[i]);
  op.source_count = static_cast<uint8_t>(compared);
  if (op.boolean != BooleanOp::none) {
    Operand third = instruction.operands[3];
    op.third_negated = third.negated;
    third.negated = false;
    op.s[2] = source(third, Type::pred);
    op.source_count = 3;
  }
}

void Decoder::branch_to(Op& op, const Operand& label) {
  if (label.kind != Operand::Kind::label || label.target < 0) fail("the branch target is no label");
  fixups_.push_back({code_->ops.size(), label.target, -1});
  op.target = 0;
}

void Decoder::branch_table(Op& op, const Operand& labels) {
  if (labels.kind != Operand::Kind::vector) fail("expected a .branchtargets list");
  op.immediate = code_->branch_tables.size();
  code_->branch_tables.emplace_back(labels.elements.size(), 0);
  for (size_t i = 0; i < labels.elements.size(); ++i) {
    if (labels.elements[i].kind != Operand::Kind::label || labels.elements[i].target < 0)
      fail("expected a .branchtargets list");
    fixups_.push_back({code_->ops.size(), labels.elements[i].target, static_cast<int32_t>(i)});
  }
}

void Decoder::resolve_branches() {
  for (const Fixup& fixup : fixups_) {
    Op& op = code_->ops[fixup.op];
    const int32_t target = first_op_[static_cast<size_t>(fixup.instruction)];
    if (fixup.table_entry >= 0)
      code_->branch_tables[op.immediate][static_cast<size_t>(fixup.table_entry)] = target;
    else
      op.target = target;
  }
  // A branch to an exit exits at once: its lanes need not wait for the others.
  for (const Fixup& fixup : fixups_) {
    Op& op = code_->ops[fixup.op];
    if (op.kind != Kind::branch) continue;
    const Op& there = code_->ops[static_cast<size_t>(op.target)];
    if (there.kind == Kind::exit && !there.guarded) op.kind = Kind::exit;
  }
}

const std::vector<std::string>& Decoder::parts(const ptx::Instruction& instruction) const {
  static thread_local std::unordered_map<std::string, std::vector<std::string>> known;  // by opcode
  std::vector<std::string>& result = known[instruction.opcode];
  if (!result.empty()) return result;
  const std::string form = spelling_of(instruction.opcode);
  for (size_t at = 0; at <= form.size();) {
    const size_t end = std::min(form.find('.', at), form.size());
    result.push_back(form.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

void Decoder::expect_operands(const ptx::Instruction& instruction, size_t least, size_t most) const {
  const size_t count = instruction.operands.size();
  if (count >= least && count <= most) return;
  fail(instruction, "takes " + std::to_string(least) + (most != least ? " to " + std::to_string(most) : "") +
                        " operands, got " + std::to_string(count));
}

void Decoder::fail(const ptx::Instruction& instruction, const std::string& what) const {
  std::string line;
  if (instruction.line >= 0) {
    const ptx::Line& at = module_->lines[static_cast<size_t>(instruction.line)];
    if (at.file >= 0)
      line = " (" + module_->files[static_cast<size_t>(at.file)] + ":" + std::to_string(at.line) + ")";
  }
  throw BadInput(module_->path + ":" + std::to_string(instruction.ptx_line) + ":" +
                 std::to_string(instruction.ptx_column) + ": " + instruction.opcode + " in " + here().name +
                 line + ": " + what);
}

}  // namespace assay::vm
