#include "src/verification/diagnosis/weak_barriers.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/vm/checks/checks.h"

namespace assay {
namespace {

struct Barrier {
  int32_t function = -1, instruction = -1;  ///< of the first
  std::set<int> ptx_lines;
};

/// Of the entries that are launched, by source line.
std::map<std::pair<std::string, int>, Barrier> warp_barriers(const ptx::Module& module,
                                                             const std::set<std::string>& entries) {
  std::map<std::pair<std::string, int>, Barrier> all;
  for (size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    for (size_t i = 0; i < function.body.size() && entries.contains(function.name); ++i) {
      if (function.body[i].form.operation != ptx::Operation::bar_warp_sync) continue;
      const auto at = static_cast<int32_t>(i), in = static_cast<int32_t>(f);
      const SourceLocation where = location_of(module, in, at);
      Barrier& barrier = all[{where.file, where.line > 0 ? where.line : -where.ptx_line}];
      if (barrier.function < 0) barrier.function = in, barrier.instruction = at;
      barrier.ptx_lines.insert(function.body[i].ptx_line);
    }
  }
  return all;
}

/// The text with a barrier of the block on these lines.
std::string with_block_barriers(const std::string& text, const std::set<int>& lines) {
  std::istringstream stream(text);
  std::string made;
  int number = 0;
  for (std::string line; std::getline(stream, line);)
    made += (lines.contains(++number) ? "bar.sync 0;" : line) + "\n";
  return made;
}

bool races(const Program& program, const TensorMap& inputs, const vm::MachineOptions& machine) {
  const CheckReport report = vm::run_checked(program, inputs, machine, vm::Checks{});
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const CheckFinding& f) { return f.check == CheckName::races; }) ||
         std::find(report.ran.begin(), report.ran.end(), CheckName::races) == report.ran.end();
}

}  // namespace

std::vector<ChainLink> barriers_too_weak(const Program& program, const TensorMap& inputs,
                                         const vm::MachineOptions& machine, const SourceText& source,
                                         double seconds) {
  const double start = counted_seconds();
  std::vector<ChainLink> found;
  for (size_t i = 0; i < program.modules.size(); ++i) {
    std::set<std::string> entries;
    for (const Launch& launch : program.launches)
      if (launch.module == program.modules[i].name) entries.insert(launch.function);
    if (entries.empty()) continue;
    const ptx::Module module = ptx::parse(*program.modules[i].ptx, program.modules[i].path);
    for (const auto& [line, barrier] : warp_barriers(module, entries)) {
      if (counted_seconds() - start > seconds) return found;
      Program changed = program;
      changed.modules[i].ptx = std::make_shared<const std::string>(
          with_block_barriers(*program.modules[i].ptx, barrier.ptx_lines));
      try {
        if (!races(changed, inputs, machine))
          found.push_back(link_of(module, barrier.function, barrier.instruction, source));
      } catch (const BadInput&) {
        continue;
      }
    }
  }
  return found;
}

}  // namespace assay
