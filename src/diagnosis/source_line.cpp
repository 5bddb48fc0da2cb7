#include "src/diagnosis/source_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace assay {
namespace {

std::string operand_text(const ptx::Function& f, const ptx::Operand& o) {
  using Kind = ptx::Operand::Kind;
  switch (o.kind) {
    case Kind::reg:
      return (o.negated ? "!" : "") + f.registers[o.reg].name;
    case Kind::immediate:
      if (!o.is_float_literal) return std::to_string(static_cast<int64_t>(o.bits));
      return o.bits >> 32 ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits);
    case Kind::address: {
      const std::string base = o.reg >= 0 ? f.registers[o.reg].name : o.name;
      return o.offset ? fmt::format("[{}+{}]", base, o.offset) : "[" + base + "]";
    }
    case Kind::vector: {
      std::string text;
      for (const ptx::Operand& e : o.elements) text += (text.empty() ? "" : ",") + operand_text(f, e);
      return "{" + text + "}";
    }
    default:
      return o.name;
  }
}

void collect_registers(const ptx::Operand& o, std::vector<int32_t>& registers) {
  if (o.reg >= 0 && o.kind != ptx::Operand::Kind::address) registers.push_back(o.reg);
  for (const ptx::Operand& e : o.elements) collect_registers(e, registers);
}

/// Index of the last instruction before `before` that writes `reg`, or -1.
int32_t definition(const ptx::Function& f, int32_t reg, int32_t before) {
  for (int32_t i = before - 1; i >= 0; i--) {
    const ptx::Instruction& in = f.body[i];
    if (in.operands.empty() || in.opcode.starts_with("st.") || in.opcode.starts_with("bra")) continue;
    std::vector<int32_t> written;
    collect_registers(in.operands[0], written);
    if (std::find(written.begin(), written.end(), reg) != written.end()) return i;
  }
  return -1;
}

}  // namespace

SourceLocation location_of(const ptx::Module& module, int32_t function, int32_t instruction) {
  SourceLocation where;
  const ptx::Function& f = module.functions[function];
  where.function = f.name;
  if (instruction < 0) return where;
  const ptx::Instruction& in = f.body[instruction];
  where.ptx_line = in.ptx_line;
  where.file = module.path;
  if (in.line >= 0) {
    const ptx::Line& line = module.lines[in.line];
    where.line = line.line;
    if (line.file >= 0) where.file = module.files[line.file];
  }
  return where;
}

std::string source_text(const SourceLocation& where) {
  if (where.line <= 0 || where.file.empty()) return "";
  std::ifstream file(where.file);
  // A path recorded on another machine: the longest tail of it that exists here.
  std::filesystem::path rest = std::filesystem::path(where.file).relative_path();
  while (!file && !rest.empty()) {
    file = std::ifstream(rest);
    std::filesystem::path shorter;
    for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
    rest = shorter;
  }
  std::string text;
  for (int i = 0; i < where.line && std::getline(file, text); i++) {
  }
  if (!file) return "";
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string instruction_text(const ptx::Function& f, const ptx::Instruction& in) {
  std::string text = in.opcode;
  for (size_t i = 0; i < in.operands.size(); i++) text += (i ? ", " : " ") + operand_text(f, in.operands[i]);
  return text;
}

ChainLink link_of(const ptx::Module& module, int32_t function, int32_t instruction) {
  ChainLink link;
  link.where = location_of(module, function, instruction);
  const ptx::Function& f = module.functions[function];
  if (instruction >= 0) link.instruction = instruction_text(f, f.body[instruction]);
  link.text = source_text(link.where);
  return link;
}

std::vector<ChainLink> definitions_before(const ptx::Module& module, int32_t function, int32_t instruction,
                                          int depth) {
  std::vector<ChainLink> links;
  if (instruction < 0) return links;
  const ptx::Function& f = module.functions[function];
  std::set<int> lines{location_of(module, function, instruction).line};
  std::vector<int32_t> level{instruction};
  for (int step = 0; step < depth && !level.empty(); step++) {
    std::vector<int32_t> next;
    for (int32_t at : level)
      for (size_t i = 1; i < f.body[at].operands.size(); i++) {
        std::vector<int32_t> registers;
        collect_registers(f.body[at].operands[i], registers);
        for (int32_t reg : registers) {
          const int32_t made = definition(f, reg, at);
          if (made < 0) continue;
          next.push_back(made);
          const SourceLocation where = location_of(module, function, made);
          if (where.line > 0 && lines.insert(where.line).second)
            links.push_back(link_of(module, function, made));
        }
      }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (next.size() > 64) next.resize(64);
    level = next;
  }
  return links;
}

}  // namespace assay
