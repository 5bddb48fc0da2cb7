// Turns the instructions of one entry into ops. Rows with operands of their own (memory, vectors, labels)
// decode themselves through this interface.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/call_graph.h"
#include "src/base/vm/code.h"

namespace assay::vm {

class Decoder {
 public:
  Decoder(std::shared_ptr<const ptx::Module> module, int32_t entry,
          const std::map<std::string, uint64_t>& places = {});
  std::shared_ptr<const Code> decode();
  std::shared_ptr<const Code> lay_out();

  // For the decode functions of rows:
  /// Slot of a source operand read as `type`: register, immediate, special register or address of a symbol.
  Slot source(const ptx::Operand&, ptx::Type type);
  /// Slot of a destination register (or a scratch cell for `_`); its cell must be `type`'s.
  Slot destination(const ptx::Operand&, ptx::Type type);
  /// Slot and cell of a register, whatever its type.
  std::pair<Slot, Cell> register_cell(const ptx::Operand&);
  /// The two 64-bit cells, low half first, of a register of 128 bits.
  std::array<Slot, 2> register_pair(const ptx::Operand&);
  /// Space, base slot and offset of [address]; op.space must be set.
  void address(const ptx::Operand&, Op&);
  /// The same as a pair, for a second address of an instruction.
  std::pair<Slot, int64_t> second_address(const ptx::Operand&, bool* wide);
  /// `written`: how many of them, the first ones, are results.
  void set_slots(Op&, const std::vector<Slot>&, size_t written = 0);
  /// A cell of its own, for what one op hands to the next.
  Slot new_cell(Cell);
  /// Appends an op that runs before the one being decoded.
  void emit(const Op& op) { code_->ops.push_back(op); }
  uint64_t constant(const ptx::Operand&);
  /// For instructions that become several ops: one that runs before the instruction's own.
  void append(const Op& op) { code_->ops.push_back(op); }
  /// A 32-bit cell that no register of the program has.
  Slot scratch_word();
  /// "ld.global.v4.f32" -> {"ld", "global", "v4", "f32"}, canonical.
  const std::vector<std::string>& parts(const ptx::Instruction&) const;
  /// The cell that says where in local memory the stack of alloca ends.
  Slot stack_end();
  Slot wide_constant(uint64_t bits) { return constant_slot(bits, Cell::wide); }
  void mark_global_atomics() { code_->global_atomics = true; }
  [[noreturn]] void fail(const ptx::Instruction&, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const { fail(*current_, what); }
  void expect_operands(const ptx::Instruction&, size_t least, size_t most) const;

  void compare_operands(const ptx::Instruction&, const Row&, Op&);
  void branch_to(Op&, const ptx::Operand& label);
  void branch_table(Op&, const ptx::Operand& labels);
  void call(const ptx::Instruction&, Op&);

 private:
  struct Fixup {
    size_t op;
    int32_t instruction;  ///< of the current function; body size: its end
    int32_t table_entry;  ///< -1: Op::target
  };

  void call_function(const ptx::Instruction&, const CallSite&, int32_t callee, Op&);
  void call_with_frames(const std::vector<Slot>& arguments, const std::vector<Slot>& results, int32_t callee,
                        Op&);
  void copy_frames(const Op&, const std::vector<Slot>& triples, bool to_callee, int32_t callee,
                   std::vector<Op>& made);
  void keep_registers(const Op&, bool restore, std::vector<Op>& made);
  void move_frame(const Op&, const char* form, std::vector<Op>& made);
  Op local_access(const Op&, const char* form, Slot cell, bool framed, int64_t offset) const;
  bool has_frames(int32_t function) const { return frame_bytes_.contains(function); }
  bool is_framed(const ptx::Operand&) const;
  Slot frame_address(const ptx::Operand&);
  void begin_frames();
  bool allocates(int32_t function) const;
  int64_t lay_out_stack(const std::vector<int32_t>& functions, int64_t local);
  void move_stack_end(Slot to, Slot from);
  void begin_stack();
  void end_stack();
  int32_t argument_variable(const ptx::Instruction&, const ptx::Operand&) const;
  bool call_system(const ptx::Instruction&, const CallSite&, const ptx::Function&, Op&);
  bool spins(const Op& branch) const;
  void call_address(const ptx::Instruction&, const CallSite&, Op&);
  bool takes(const CallSite&, const ptx::Function&) const;
  bool is_too_wide(const ptx::Operand&, ptx::Type);
  Slot low_word(const ptx::Operand&, const Op& user);
  void lay_out_memory();
  void function(int32_t index);
  void instruction(const ptx::Instruction&, int32_t index);
  void plain_operands(const ptx::Instruction&, const Row&, Op&);
  void resolve_branches();
  void relocate_constants();
  void note_forms(const ptx::Instruction*, const Row*);
  void resolve_signatures();
  void append_uses(const Op&, bool written);
  Cell cell_at(Slot slot) const { return slot / 64 < cells_.size() ? cells_[slot / 64] : Cell::none; }
  void note_cell(Slot, Cell);
  [[noreturn]] void refuse(const ptx::Instruction&) const;
  Slot register_slot(int32_t reg);
  Slot constant_slot(uint64_t bits, Cell cell);
  Slot special_slot(const std::string& name, Cell cell);
  uint64_t symbol_value(const ptx::Operand&);
  uint64_t literal_bits(const ptx::Operand&, ptx::Type type) const;
  ptx::Space symbol_space(const ptx::Operand&) const;
  const ptx::Function& here() const { return module_->functions[static_cast<size_t>(function_)]; }

  std::shared_ptr<const ptx::Module> module_;
  CallGraph call_graph_;
  std::shared_ptr<Code> code_;
  int32_t function_ = -1;
  const ptx::Instruction* current_ = nullptr;
  std::vector<Fixup> fixups_;
  std::vector<int32_t> first_op_;             ///< by instruction of the current function, end included
  std::vector<std::vector<Slot>> registers_;  ///< by function, by register; no_slot: not named yet
  std::vector<Cell> cells_;       ///< by slot / 64, of registers; constants join when they have their places
  std::vector<ptx::Form> forms_;  ///< by op
  std::map<std::pair<uint64_t, Cell>, Slot> constants_;
  std::map<std::string, Slot> specials_;
  std::vector<Slot> scratch_;  ///< by Cell
  uint32_t constant_bytes_ = 0;
  std::vector<int64_t> variable_offsets_;  ///< module .shared variables
  std::map<std::pair<int32_t, int32_t>, int64_t>
      function_offsets_;                                 ///< (function, variable or -1 - parameter)
  std::map<int32_t, int64_t> frame_bytes_;               ///< of functions that lead to themselves
  std::map<int32_t, int64_t> kept_registers_;            ///< where in its frame a function keeps them
  int64_t stack_ = 0;                                    ///< where in local memory the frames begin
  Slot frame_ = no_slot;                                 ///< address of the running function's frame
  int64_t allocated_ = 0;                                ///< where in local memory that of alloca begins
  Slot stack_end_ = no_slot;                             ///< where it ends now; no_slot: no function has any
  Slot stack_before_ = no_slot;                          ///< where it ended when the function was called
  std::vector<int32_t> function_start_;                  ///< op index by function, -1 not yet decoded
  std::vector<std::pair<size_t, int32_t>> call_fixups_;  ///< op, function
  std::vector<int32_t> pending_functions_;
};

/// Fills Op::reconverge of the branches in ops [first, last): the immediate post-dominator
/// (control_flow.cpp).
void find_reconvergence(Code& code, size_t first, size_t last);

}  // namespace assay::vm
