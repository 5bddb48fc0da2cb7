// Mutants of a PTX module: the same text with one instruction changed. What is changed into what is a table.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::ptx {

/// One instruction as written, in parts: "@%p1", "fma.rn.f32", {"%f1", "%f2", "%f3", "0f3F800000"}.
struct InstructionText {
  std::string guard, opcode;
  std::vector<std::string> operands;
  std::string joined() const;
};

/// What a mutation operator looks at.
struct MutationSite {
  const Module& module;
  const Function& function;
  int32_t instruction;  ///< into Function::body
  InstructionText text;
  std::vector<int32_t> writes;  ///< registers, into Function::registers
};

/// One way to change instructions; the row carries the behaviour (mutation_operators.cpp).
struct MutationOperator {
  std::string_view name;
  std::string_view opcodes;  ///< which it takes, for people
  std::string_view summary;
  /// Texts that stand in the instruction's place, one for each way; none where the operator does not apply.
  /// Some are no instructions of any machine (a rounding that a form lacks): decoding tells.
  std::vector<std::string> (*ways)(const MutationSite&);
};
const std::vector<MutationOperator>& mutation_operators();

/// One change of one instruction. Its name is "1234+fma-to-mul" (PTX line, operator), "1234c17+..." where
/// another instruction begins on that line before it, "...+compare-edge.2" for the second of several ways.
struct Mutation {
  int32_t function = -1, instruction = -1;
  const MutationOperator* change = nullptr;
  int way = 0;
};

/// A module's text beside its program.
class MutableText {
 public:
  /// Throws BadInput where the text does not parse.
  MutableText(std::shared_ptr<const std::string> text, std::string path);

  const Module& module() const { return module_; }
  /// All changes of the instructions of a function, in their order.
  std::vector<Mutation> mutations(int32_t function) const;
  std::string name(const Mutation&) const;
  /// Throws BadInput for a name that is none of this module's.
  Mutation named(std::string_view name) const;

  std::string original(const Mutation&) const;     ///< the instruction as it stands, in one line
  std::string replacement(const Mutation&) const;  ///< what takes its place; empty: nothing
  std::string with(const Mutation&) const;         ///< the whole text, changed; lines keep their numbers

 private:
  struct Extent {
    size_t begin = 0, end = 0;  ///< the ';' included
  };
  Extent extent(const Instruction&) const;
  MutationSite site(int32_t function, int32_t instruction) const;
  std::string place(int32_t function, int32_t instruction) const;

  std::shared_ptr<const std::string> text_;
  Module module_;
  std::vector<size_t> line_starts_;
};

}  // namespace assay::ptx
