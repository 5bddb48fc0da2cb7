#include "kernels/module_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "kernels/packed_text.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

/// Opcodes of every instruction of a module, with their counts.
std::map<std::string, int> forms_of(const Module& module) {
  std::map<std::string, int> forms;
  for (const ptx::Function& function : ptx::parse(*module.ptx, module.path).functions)
    for (const ptx::Instruction& instruction : function.body) ++forms[instruction.opcode];
  return forms;
}

/// Whether rounding is left open: the back end could then contract a product and a sum into one rounding.
bool leaves_rounding_open(const std::string& form) {
  static const std::regex open(R"((mul|add|sub|mad|fma)(\.ftz|\.sat)*\.(f32|f64|f16|f16x2|bf16|bf16x2))");
  return std::regex_match(form, open);
}

TEST(ModuleText, RecognisesArithmeticWithoutARoundingModifier) {
  for (const char* form : {"mul.f32", "add.f32", "sub.ftz.f32", "add.f64", "mul.bf16x2"})
    EXPECT_TRUE(leaves_rounding_open(form)) << form;
  for (const char* form :
       {"mul.rn.f32", "fma.rn.f32", "add.rn.ftz.f32", "add.s32", "mul.lo.s32", "mul.wide.u32"})
    EXPECT_FALSE(leaves_rounding_open(form)) << form;
}

TEST(ModuleText, ArithmeticOfTheKernelsSaysHowItRounds) {
  for (const Module& module : kernel_modules())
    for (const auto& [form, count] : forms_of(module))
      EXPECT_FALSE(leaves_rounding_open(form)) << module.name << ": " << form << " (" << count << " times)";
}

TEST(ModuleText, FormsAreThoseListedForTheMachine) {
  std::set<std::string> listed, used;
  std::ifstream file(ASSAY_SOURCE_DIR "/kernels/forms.txt");
  for (std::string form, count; file >> form >> count;)
    if (form[0] != '%') listed.insert(form);
  for (const Module& module : kernel_modules())
    for (const auto& [form, count] : forms_of(module)) used.insert(form);
  EXPECT_GT(used.size(), 50u);
  EXPECT_EQ(used, listed)
      << "kernels changed: run `ninja forms` and see whether the machine knows every form";
}

TEST(ModuleText, NoAtomicsAndOnlySharedOrGlobalMemory) {
  for (const Module& module : kernel_modules())
    for (const auto& [form, count] : forms_of(module)) {
      EXPECT_FALSE(form.starts_with("atom") || form.starts_with("red")) << module.name << ": " << form;
      EXPECT_EQ(form.find(".local"), std::string::npos) << module.name << ": " << form;
    }
}

TEST(ModuleText, NamesNoPathOfTheMachineThatBuiltIt) {
  for (const Module& module : kernel_modules()) {
    const ptx::Module parsed = ptx::parse(*module.ptx, module.path);
    EXPECT_EQ(parsed.version, "7.0");
    EXPECT_EQ(parsed.target, "sm_80");
    for (const std::string& file : parsed.files)
      EXPECT_TRUE(file.starts_with("kernels/") || file.starts_with("cuda/")) << module.name << ": " << file;
  }
}

TEST(ModuleText, InstructionsComeFromOurLines) {
  for (const Module& module : kernel_modules()) {
    const ptx::Module parsed = ptx::parse(*module.ptx, module.path);
    for (const ptx::Function& function : parsed.functions)
      for (const ptx::Instruction& instruction : function.body) {
        if (instruction.line < 0) continue;
        const ptx::Line& line = parsed.lines[static_cast<size_t>(instruction.line)];
        const std::string& file = parsed.files[static_cast<size_t>(line.file)];
        EXPECT_TRUE(file.starts_with("kernels/") && !file.ends_with("/instruction.cuh"))
            << module.name << ':' << instruction.ptx_line << ' ' << instruction.opcode << " from " << file;
      }
  }
}

TEST(ModuleText, StaysSmall) {
  size_t stored = 0;
  for (const Module& module : kernel_modules()) stored += packed(*module.ptx).size();
  EXPECT_LT(stored, size_t{48} << 20) << "bytes of compressed PTX";
}

}  // namespace
}  // namespace assay
