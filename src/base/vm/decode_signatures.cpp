// Signatures of the ops: what each reads, writes and reaches, by its row and the slots that decoding gave it.

#include "src/base/vm/decoder.h"

namespace assay::vm {
namespace {

using ptx::Type;

Type bits_of_width(int bytes) {
  return bytes == 8 ? Type::b64 : bytes == 2 ? Type::b16 : bytes == 1 ? Type::b8 : Type::b32;
}
Type bits_of(Cell cell) {
  return cell == Cell::mask   ? Type::pred
         : cell == Cell::wide ? Type::b64
         : cell == Cell::word ? Type::b32
                              : Type::none;
}
/// `type` where a cell can hold it, else the cell's bits.
Type fitting(Type type, Cell cell) {
  return cell_of(type) == cell ? type : bits_of(cell);
}

bool slots_are_registers(const Op& op) {
  return op.row->flow != Flow::none && op.row->flow != Flow::parameters;
}

/// Of the elements in Op::slots.
Type element_type(const Op& op, Cell cell) {
  const Flow flow = op.row->flow;
  if (flow == Flow::load || flow == Flow::store) return fitting(op.type, cell);
  if (flow == Flow::pack || flow == Flow::unpack) return fitting(bits_of_width(op.element_bytes), cell);
  return bits_of(cell);
}

Use source_use(const Op& op, size_t i, Cell cell) {
  const Row& row = *op.row;
  const bool matrix = row.flow == Flow::matrix;
  Use use{op.s[i], cell, Purpose::value,
          fitting(row.sources[i] != Type::none ? row.sources[i] : op.type, cell)};
  if (static_cast<int>(i) == row.members) use.purpose = Purpose::members;
  if (matrix && cell == Cell::wide) use.purpose = Purpose::descriptor;
  if (!matrix && op.space != ptx::Space::none && row.flow != Flow::comparison && row.flow != Flow::address &&
      (i == 0 || (i == 1 && row.flow == Flow::copy_async)))
    use.purpose = Purpose::address;
  if (use.purpose != Purpose::value || (row.flow == Flow::copy_async)) use.type = bits_of(cell);
  return use;
}

Access::Direction direction_of(const Op& op) {
  using Direction = Access::Direction;
  for (const Role role : op.row->operands) {
    if (role == Role::load_from) return Direction::read;
    if (role == Role::store_to) return Direction::write;
  }
  return Direction::update;
}

void append_accesses(const Op& op, std::vector<Access>& accesses) {
  using Direction = Access::Direction;
  const Row& row = *op.row;
  Access made;
  made.proxy = row.asynchronous.proxy;
  made.base = op.s[0], made.base_wide = op.address_wide, made.offset = op.offset;
  made.bytes = uint32_t{op.element_bytes} * op.vector_length;
  made.space = op.space;
  if (row.flow == Flow::matrix) {
    const MatrixForm form = MatrixForm::of(op.immediate);
    if (!form.warpgroup) return;
    made.reach = Access::Reach::descriptor, made.space = ptx::Space::shared, made.bytes = 0, made.offset = 0;
    if (form.a_in_shared) accesses.push_back(made);
    made.base = op.s[1];
    accesses.push_back(made);
    return;
  }
  if (op.space == ptx::Space::none || row.flow == Flow::comparison || row.flow == Flow::address) return;
  if (row.flow == Flow::copy_async) {
    made.space = ptx::Space::global;
    accesses.push_back(made);
    made.direction = Direction::write, made.space = ptx::Space::shared;
    made.base = op.s[1], made.base_wide = op.address2_wide, made.offset = op.offset2;
    accesses.push_back(made);
    return;
  }
  if (row.flow == Flow::load_matrix || row.flow == Flow::store_matrix)
    made.reach = Access::Reach::rows, made.bytes = 16;
  made.direction = direction_of(op);
  accesses.push_back(made);
}

}  // namespace

void Decoder::append_uses(const Op& op, bool written) {
  std::vector<Use>& uses = code_->uses;
  const auto slots = [&](uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last && slots_are_registers(op); ++i) {
      const Cell cell = cell_at(op.slots[i]);
      uses.push_back({op.slots[i], cell, op.row->flow == Flow::copy_bulk ? Purpose::address : Purpose::value,
                      element_type(op, cell)});
    }
  };
  if (written) {
    const Type type = op.row->flow == Flow::atomic || op.row->result == Type::none ? op.type : op.row->result;
    if (op.d != no_slot) uses.push_back({op.d, cell_at(op.d), Purpose::value, fitting(type, cell_at(op.d))});
    if (op.d2 != no_slot) uses.push_back({op.d2, Cell::mask, Purpose::value, Type::pred});
    return slots(0, op.written_slots);
  }
  for (size_t i = 0; i < 4; ++i)
    if (op.s[i] != no_slot) uses.push_back(source_use(op, i, cell_at(op.s[i])));
  // D of wgmma is also what it adds to.
  const bool in_place = !op.row->operands.empty() && op.row->operands[0] == Role::update;
  slots(in_place ? 0 : op.written_slots, op.slot_count);
  if (op.guarded) uses.push_back({op.guard, Cell::mask, Purpose::guard, Type::pred});
}

void Decoder::resolve_signatures() {
  for (const Immediate& immediate : code_->immediates) note_cell(immediate.slot, immediate.cell);
  for (const SpecialCell& special : code_->specials) note_cell(special.slot, special.cell);
  for (size_t f = 0; f < registers_.size(); ++f)
    for (size_t r = 0; r < registers_[f].size(); ++r)
      if (const Slot slot = registers_[f][r]; slot != no_slot)
        code_->registers.push_back({static_cast<int32_t>(f), static_cast<int32_t>(r), slot});
  struct Extent {
    size_t reads, writes, accesses, end;
  };
  std::vector<Extent> extents;
  std::vector<Access>& accesses = code_->accesses;
  for (const Op& op : code_->ops) {
    Extent at{code_->uses.size(), 0, accesses.size(), 0};
    append_uses(op, false);
    at.writes = code_->uses.size();
    append_uses(op, true);
    at.end = code_->uses.size();
    append_accesses(op, accesses);
    extents.push_back(at);
  }
  code_->signatures.resize(code_->ops.size());
  const Use* const uses = code_->uses.data();
  for (size_t i = 0; i < code_->ops.size(); ++i) {
    const Op& op = code_->ops[i];
    const Extent& at = extents[i];
    const size_t accesses_end = i + 1 < extents.size() ? extents[i + 1].accesses : accesses.size();
    Signature& made = code_->signatures[i];
    made.meaning = op.row;
    made.form = forms_[i];
    made.control = control_of(op.kind);
    made.reads = {uses + at.reads, uses + at.writes};
    made.writes = {uses + at.writes, uses + at.end};
    made.accesses = {accesses.data() + at.accesses, accesses.data() + accesses_end};
    if (op.row->flow == Flow::matrix) made.matrix = MatrixForm::of(op.immediate);
    const Asynchronous& work = op.row->asynchronous;
    if (work.step == Step::wait && work.completion != Completion::mbarrier) made.groups = op.immediate;
  }
}

/// The instruction's own form for ops of its row; of others the row's, in the order that the instruction
/// names.
void Decoder::note_forms(const ptx::Instruction* instruction, const Row* row) {
  for (size_t i = forms_.size(); i < code_->ops.size(); ++i) {
    const Op& op = code_->ops[i];
    ptx::Form form = instruction && op.row == row ? instruction->form : op.row->form;
    if (instruction) form.order = instruction->form.order;
    forms_.push_back(form);
  }
}

}  // namespace assay::vm
