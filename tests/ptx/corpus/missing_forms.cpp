// Lists the instruction forms of PTX files that the machine lacks, each with the first function that uses it:
// `ninja missing_forms` does so for the corpus as nvcc compiles it four ways.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "src/base/ptx/program.h"
#include "src/base/vm/instruction_row.h"

int main(int count, char** paths) {
  std::map<std::string, std::string> lacking;
  for (int i = 1; i < count; ++i) {
    std::ifstream file(paths[i]);
    std::stringstream text;
    text << file.rdbuf();
    const assay::ptx::Module module = assay::ptx::parse(text.str(), paths[i]);
    for (const assay::ptx::Function& function : module.functions)
      for (const assay::ptx::Instruction& instruction : function.body)
        if (!assay::vm::find_row(instruction))
          lacking.emplace(assay::ptx::canonical_form(instruction.opcode), function.name);
  }
  for (const auto& [form, function] : lacking) fmt::print("{}  ({})\n", form, function);
  return 0;
}
