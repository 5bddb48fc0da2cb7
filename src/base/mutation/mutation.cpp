#include "src/base/mutation/mutation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/signature.h"

namespace assay::ptx {
namespace {

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

/// Blanks and line ends as single blanks.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  return trimmed(line);
}

/// Split at commas outside brackets.
std::vector<std::string> operands_of(std::string_view text) {
  std::vector<std::string> operands;
  if (trimmed(text).empty()) return operands;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == '{' || c == '(') ++depth;
    if (c == ']' || c == '}' || c == ')') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    operands.push_back(in_one_line(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return operands;
}

/// Of the text between an instruction's first character and its ';'.
InstructionText parts_of(std::string_view text) {
  InstructionText parts;
  std::string rest = in_one_line(text);
  if (rest.starts_with('@')) {
    const size_t end = std::min(rest.find(' '), rest.size());
    parts.guard = rest.substr(0, end);
    rest = trimmed(std::string_view(rest).substr(end));
  }
  const size_t end = std::min(rest.find_first_of(" {(["), rest.size());
  parts.opcode = rest.substr(0, end);
  parts.operands = operands_of(std::string_view(rest).substr(end));
  return parts;
}

bool has_comment(std::string_view text) {
  return text.find("//") != text.npos || text.find("/*") != text.npos;
}

}  // namespace

std::string InstructionText::joined() const {
  return fmt::format("{}{}{}{}{};", guard, guard.empty() ? "" : " ", opcode, operands.empty() ? "" : " ",
                     fmt::join(operands, ", "));
}

MutableText::MutableText(std::shared_ptr<const std::string> text, std::string path)
    : text_(std::move(text)), module_(parse_functions(*text_, std::move(path))) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_->size(); ++i)
    if ((*text_)[i] == '\n') line_starts_.push_back(i + 1);
}

MutableText::Extent MutableText::extent(const Instruction& instruction) const {
  const size_t begin = line_starts_[static_cast<size_t>(instruction.ptx_line - 1)] +
                       static_cast<size_t>(instruction.ptx_column - 1);
  return {begin, text_->find(';', begin) + 1};
}

MutationSite MutableText::site(int32_t function, int32_t instruction) const {
  const Function& f = module_.functions[static_cast<size_t>(function)];
  const Extent at = extent(f.body[static_cast<size_t>(instruction)]);
  return {module_, f, instruction, parts_of(std::string_view(*text_).substr(at.begin, at.end - 1 - at.begin)),
          vm::signature_of(f.body[static_cast<size_t>(instruction)]).writes};
}

std::vector<Mutation> MutableText::mutations(int32_t function) const {
  std::vector<Mutation> all;
  const Function& f = module_.functions[static_cast<size_t>(function)];
  for (int32_t i = 0; i < static_cast<int32_t>(f.body.size()); ++i) {
    const Extent at = extent(f.body[static_cast<size_t>(i)]);
    if (has_comment(std::string_view(*text_).substr(at.begin, at.end - at.begin))) continue;
    const MutationSite here = site(function, i);
    for (const MutationOperator& row : mutation_operators()) {
      const auto ways = static_cast<int>(row.ways(here).size());
      for (int way = 0; way < ways; ++way) all.push_back({function, i, &row, way});
    }
  }
  return all;
}

/// "1234", or "1234c17" where an instruction before it begins on the same line.
std::string MutableText::place(int32_t function, int32_t instruction) const {
  const auto& body = module_.functions[static_cast<size_t>(function)].body;
  const Instruction& here = body[static_cast<size_t>(instruction)];
  const bool first = instruction == 0 || body[static_cast<size_t>(instruction - 1)].ptx_line != here.ptx_line;
  return first ? std::to_string(here.ptx_line) : fmt::format("{}c{}", here.ptx_line, here.ptx_column);
}

std::string MutableText::name(const Mutation& m) const {
  return fmt::format("{}+{}{}", place(m.function, m.instruction), m.change->name,
                     m.way == 0 ? "" : fmt::format(".{}", m.way + 1));
}

Mutation MutableText::named(std::string_view name) const {
  const auto none = [&](const std::string& why) {
    return BadInput(fmt::format("mutant '{}' of {}: {}", name, module_.path, why));
  };
  int line = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), line);
  if (error != std::errc() || name.find('+') == name.npos)
    throw none("write it as LINE+OPERATOR, as in 1234+fma-to-mul");
  bool reached = false;
  std::vector<std::string> there;
  for (size_t f = 0; f < module_.functions.size(); ++f) {
    const auto& body = module_.functions[f].body;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].ptx_line != line) continue;
      reached = true;
      const MutationSite here = site(static_cast<int32_t>(f), static_cast<int32_t>(i));
      for (const MutationOperator& row : mutation_operators()) {
        const auto ways = static_cast<int>(row.ways(here).size());
        for (int way = 0; way < ways; ++way) {
          const Mutation made{static_cast<int32_t>(f), static_cast<int32_t>(i), &row, way};
          there.push_back(this->name(made));
          if (there.back() == name) return made;
        }
      }
    }
  }
  if (!reached) throw none(fmt::format("line {} holds no instruction", line));
  throw none(there.empty() ? "this instruction has no mutants"
                           : fmt::format("there are: {}", fmt::join(there, ", ")));
}

std::string MutableText::original(const Mutation& m) const {
  return site(m.function, m.instruction).text.joined();
}

std::string MutableText::replacement(const Mutation& m) const {
  return m.change->ways(site(m.function, m.instruction))[static_cast<size_t>(m.way)];
}

std::string MutableText::with(const Mutation& m) const {
  const Extent at =
      extent(module_.functions[static_cast<size_t>(m.function)].body[static_cast<size_t>(m.instruction)]);
  const std::string made = replacement(m);
  std::string text;
  text.reserve(text_->size() + made.size());
  text.append(*text_, 0, at.begin);
  text += made;
  for (size_t i = at.begin; i < at.end; ++i)
    if ((*text_)[i] == '\n') text += '\n';
  text.append(*text_, at.end, text_->npos);
  return text;
}

}  // namespace assay::ptx
