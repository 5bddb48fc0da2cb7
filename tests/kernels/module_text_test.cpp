#include "kernels/module_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <thread>
#include <vector>

#include "kernels/packed_text.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

/// What the tests below ask of a module's text.
struct Summary {
  std::string name, version, target;
  std::map<std::string, int> forms;  ///< opcodes of its instructions, with their counts
  std::vector<std::string> files;
  std::vector<std::string> foreign;  ///< instructions that come from none of our lines
};

Summary summary_of(const Module& module) {
  const ptx::Module parsed = ptx::parse(*module.ptx, module.path);
  Summary summary{module.name, parsed.version, parsed.target, {}, parsed.files, {}};
  for (const ptx::Function& function : parsed.functions)
    for (const ptx::Instruction& instruction : function.body) {
      ++summary.forms[instruction.opcode];
      if (instruction.line < 0) continue;
      const ptx::Line& line = parsed.lines[static_cast<size_t>(instruction.line)];
      const std::string& file = parsed.files[static_cast<size_t>(line.file)];
      if (!file.starts_with("kernels/") || file.ends_with("instruction.cuh"))
        summary.foreign.push_back(
            fmt::format("{}:{} {} from {}", module.name, instruction.ptx_line, instruction.opcode, file));
    }
  return summary;
}

/// Of all modules, each parsed once.
const std::vector<Summary>& summaries() {
  static const std::vector<Summary> all = [] {
    const std::vector<Module> modules = kernel_modules();
    std::vector<Summary> result(modules.size());
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i; (i = next++) < modules.size();) result[i] = summary_of(modules[i]);
    };
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads) thread = std::jthread(work);
    threads.clear();
    return result;
  }();
  return all;
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
  for (const Summary& module : summaries())
    for (const auto& [form, count] : module.forms)
      EXPECT_FALSE(leaves_rounding_open(form)) << module.name << ": " << form << " (" << count << " times)";
}

TEST(ModuleText, FormsAreThoseListedForTheMachine) {
  std::set<std::string> listed, used;
  std::ifstream file(ASSAY_SOURCE_DIR "/kernels/forms.txt");
  for (std::string form, count; file >> form >> count;)
    if (form[0] != '%') listed.insert(form);
  for (const Summary& module : summaries())
    for (const auto& [form, count] : module.forms) used.insert(form);
  EXPECT_GT(used.size(), 50u);
  EXPECT_EQ(used, listed)
      << "kernels changed: run `ninja forms` and see whether the machine knows every form";
}

TEST(ModuleText, NoAtomicsAndOnlySharedOrGlobalMemory) {
  for (const Summary& module : summaries())
    for (const auto& [form, count] : module.forms) {
      EXPECT_FALSE(form.starts_with("atom") || form.starts_with("red")) << module.name << ": " << form;
      EXPECT_EQ(form.find(".local"), std::string::npos) << module.name << ": " << form;
    }
}

TEST(ModuleText, NamesNoPathOfTheMachineThatBuiltIt) {
  for (const Summary& module : summaries()) {
    const bool hopper = module.name.find("_hopper.") != std::string::npos;
    EXPECT_EQ(module.version, hopper ? "8.0" : "7.0");
    EXPECT_EQ(module.target, hopper ? "sm_90a" : "sm_80");
    for (const std::string& file : module.files)
      EXPECT_TRUE(file.starts_with("kernels/") || file.starts_with("cuda/")) << module.name << ": " << file;
  }
}

TEST(ModuleText, InstructionsComeFromOurLines) {
  for (const Summary& module : summaries())
    EXPECT_TRUE(module.foreign.empty()) << module.foreign.size() << " do not: " << module.foreign.front();
}

TEST(ModuleText, StaysSmall) {
  size_t stored = 0;
  for (const Module& module : kernel_modules()) stored += packed(*module.ptx).size();
  EXPECT_LT(stored, size_t{48} << 20) << "bytes of compressed PTX";
}

}  // namespace
}  // namespace assay
