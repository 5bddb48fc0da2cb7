// Signatures of a program's text.
#include "src/base/vm/signature.h"

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

using ptx::Operand;

void collect(const Operand& operand, std::vector<int32_t>& registers) {
  if (operand.reg >= 0) registers.push_back(operand.reg);
  for (const Operand& element : operand.elements) collect(element, registers);
}

bool is_address(Role role) {
  return role == Role::load_from || role == Role::store_to || role == Role::modify_at;
}

/// Of each operand. A result that may be left out is, where an address stands in its place.
std::vector<Role> roles_of(const Meaning* meaning, const std::vector<Operand>& operands) {
  static const std::vector<Role> plain{Role::write, Role::read};
  const std::vector<Role>& declared = meaning && !meaning->operands.empty() ? meaning->operands : plain;
  const bool left_out =
      declared[0] == Role::write_any && !operands.empty() && operands[0].kind == Operand::Kind::address;
  std::vector<Role> roles;
  for (size_t i = left_out; roles.size() < operands.size(); ++i)
    roles.push_back(declared[std::min(i, declared.size() - 1)]);
  return roles;
}

Access access_of(const Meaning& meaning, const ptx::Form& form, Role role, size_t operand) {
  using Direction = Access::Direction;
  Access made;
  made.direction = role == Role::load_from  ? Direction::read
                   : role == Role::store_to ? Direction::write
                                            : Direction::update;
  made.space = form.space == ptx::Space::none ? ptx::Space::generic : form.space;
  // The first space written is where it goes.
  if (meaning.flow == Flow::copy_bulk && role == Role::load_from) made.space = ptx::Space::generic;
  if (meaning.flow == Flow::copy_async)
    made.space = role == Role::load_from ? ptx::Space::global : ptx::Space::shared;
  made.proxy = meaning.asynchronous.proxy;
  made.operand = static_cast<int8_t>(operand);
  const bool by_rows = meaning.flow == Flow::load_matrix || meaning.flow == Flow::store_matrix;
  if (by_rows) made.reach = Access::Reach::rows, made.bytes = 16;
  if (meaning.flow == Flow::load || meaning.flow == Flow::store || meaning.flow == Flow::atomic ||
      (meaning.flow == Flow::none && meaning.asynchronous.completion == Completion::mbarrier))
    made.bytes = uint32_t{form.vector} * static_cast<uint32_t>(ptx::bytes_of(form.type()));
  return made;
}

}  // namespace

const Meaning* meaning_of(const ptx::Instruction& instruction) {
  return find_row(instruction);
}

TextSignature signature_of(const ptx::Instruction& instruction) {
  TextSignature made;
  const Row* row = find_row(instruction);
  made.meaning = row;
  made.form = instruction.form;
  if (row) made.control = control_of(row->kind);
  if (instruction.predicate >= 0) made.reads.push_back(instruction.predicate);
  const std::vector<Role> roles = roles_of(row, instruction.operands);
  for (size_t i = 0; i < roles.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    const bool writes = roles[i] == Role::write || roles[i] == Role::write_any || roles[i] == Role::update;
    if (writes) collect(operand, made.writes);
    if (!writes || roles[i] == Role::update) collect(operand, made.reads);
    if (row && is_address(roles[i]) && operand.kind == Operand::Kind::address)
      made.accesses.push_back(access_of(*row, made.form, roles[i], i));
  }
  return made;
}

Evidence evidence_of(const Meaning& meaning, std::string_view form, int architecture) {
  const int least = least_architecture(form);
  return least == 0 || architecture < least ? Evidence::absent : meaning.status.on(architecture);
}

}  // namespace assay::vm
