// Lists the instruction forms of PTX files that the machine lacks, each with the first function that uses it:
// `ninja missing_forms` does so for the corpus as nvcc compiles it four ways.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "src/base/ptx/program.h"
#include "src/base/vm/instruction_row.h"

namespace assay {
namespace {

/// mov with a vector operand has rows of its own.
std::string form_of(const ptx::Instruction& instruction) {
  if (!instruction.opcode.starts_with("mov.") || instruction.operands.size() != 2) return instruction.opcode;
  const char* const kinds[] = {" unpack", " pack"};
  for (size_t i = 0; i < 2; ++i)
    if (instruction.operands[i].kind == ptx::Operand::Kind::vector) return instruction.opcode + kinds[i];
  return instruction.opcode;
}

}  // namespace
}  // namespace assay

int main(int count, char** paths) {
  std::map<std::string, std::string> lacking;
  for (int i = 1; i < count; ++i) {
    std::ifstream file(paths[i]);
    std::stringstream text;
    text << file.rdbuf();
    const assay::ptx::Module module = assay::ptx::parse(text.str(), paths[i]);
    for (const assay::ptx::Function& function : module.functions)
      for (const assay::ptx::Instruction& instruction : function.body)
        if (!assay::vm::find_row(assay::form_of(instruction)))
          lacking.emplace(assay::vm::canonical_form(instruction.opcode), function.name);
  }
  for (const auto& [form, function] : lacking) fmt::print("{}  ({})\n", form, function);
  return 0;
}
