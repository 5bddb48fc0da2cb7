#include "src/verification/diagnosis/line_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "src/base/mutation/mutation.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

/// More copies of a line than loops are unrolled to are not tried.
constexpr size_t kMostCopies = 16;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string without_end(std::string instruction) {
  if (instruction.empty()) return "nothing";
  if (instruction.back() == ';') instruction.pop_back();
  return instruction;
}

/// All of these changes at once; each stays on its instruction's line.
std::string with_all(const ptx::MutableText& text, const std::vector<ptx::Mutation>& changes,
                     std::vector<std::string> lines) {
  for (const ptx::Mutation& m : changes) {
    const auto at = static_cast<size_t>(text.module()
                                            .functions[static_cast<size_t>(m.function)]
                                            .body[static_cast<size_t>(m.instruction)]
                                            .ptx_line) -
                    1;
    lines[at] = lines_of(text.with(m))[at];
  }
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

/// Of the line's instructions, those of one opcode that change in one way together.
std::vector<std::vector<ptx::Mutation>> changes_of(const ptx::MutableText& text,
                                                   const std::set<std::string>& entries,
                                                   const SourceLocation& line) {
  const ptx::Module& module = text.module();
  std::map<std::tuple<std::string, const ptx::MutationOperator*, int>, std::vector<ptx::Mutation>> alike;
  for (size_t f = 0; f < module.functions.size(); ++f) {
    if (!entries.contains(module.functions[f].name)) continue;
    const auto function = static_cast<int32_t>(f);
    std::map<int32_t, bool> here;
    for (const ptx::Mutation& m : text.mutations(function)) {
      const auto [known, is_new] = here.try_emplace(m.instruction, false);
      if (is_new) {
        const SourceLocation where = location_of(module, function, m.instruction);
        known->second = where.file == line.file && where.line == line.line &&
                        (line.line > 0 || where.ptx_line == line.ptx_line);
      }
      if (!known->second) continue;
      const std::string original = text.original(m);
      alike[{original.substr(0, original.find(' ')), m.change, m.way}].push_back(m);
    }
  }
  std::vector<std::vector<ptx::Mutation>> all;
  for (auto& [key, changes] : alike)
    if (changes.size() <= kMostCopies) all.push_back(std::move(changes));
  return all;
}

}  // namespace

std::optional<std::string> repair_of(const Program& program, const SourceLocation& line,
                                     const std::function<bool(const Program&)>& is_right,
                                     const std::function<bool()>& late) {
  for (size_t i = 0; i < program.modules.size(); ++i) {
    std::set<std::string> entries;
    for (const Launch& launch : program.launches)
      if (launch.module == program.modules[i].name) entries.insert(launch.function);
    if (entries.empty()) continue;
    const ptx::MutableText text(program.modules[i].ptx, program.modules[i].path);
    const std::vector<std::string> lines = lines_of(*program.modules[i].ptx);
    for (const std::vector<ptx::Mutation>& changes : changes_of(text, entries, line)) {
      if (late()) return std::nullopt;
      Program changed = program;
      changed.modules[i].ptx = std::make_shared<const std::string>(with_all(text, changes, lines));
      try {
        if (is_right(changed))
          return fmt::format("{} for {}", without_end(text.replacement(changes.front())),
                             without_end(text.original(changes.front())));
      } catch (const BadInput&) {
        continue;  // no instruction of the machine
      }
    }
  }
  return std::nullopt;
}

}  // namespace assay
