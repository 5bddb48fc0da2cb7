#include "src/verification/diagnosis/source_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/defect.h"
#include "kernels/module_text.h"
#include "src/base/program/source_place.h"
#include "src/base/program/source_root.h"
#include "src/base/ptx/inlined_frames.h"
#include "src/base/vm/signature.h"
#include "src/result/identity.h"

namespace assay {
namespace {

using ptx::Operation;

void collect_registers(const ptx::Operand& o, std::vector<int32_t>& registers) {
  if (o.reg >= 0 && o.kind != ptx::Operand::Kind::address) registers.push_back(o.reg);
  for (const ptx::Operand& e : o.elements) collect_registers(e, registers);
}

/// Index of the last instruction before `before` that writes `reg`, or -1.
int32_t definition(const ptx::Function& f, int32_t reg, int32_t before) {
  for (int32_t i = before - 1; i >= 0; i--) {
    const ptx::Instruction& in = f.body[i];
    const std::vector<int32_t> written = vm::signature_of(in).writes;
    if (std::find(written.begin(), written.end(), reg) != written.end()) return i;
  }
  return -1;
}

/// What made an operand, copies left out; -1: none in this function.
int32_t maker(const ptx::Function& f, const ptx::Operand& operand, int32_t before) {
  if (operand.kind != ptx::Operand::Kind::reg) return -1;
  const int32_t made = definition(f, operand.reg, before);
  const bool copied = made >= 0 && f.body[made].form.operation == Operation::mov;
  return copied && f.body[made].operands[1].kind == ptx::Operand::Kind::reg
             ? definition(f, f.body[made].operands[1].reg, made)
             : made;
}

/// A shift to the left, perhaps with a literal added: an exponent put where a float has it.
bool is_shifted(const ptx::Function& f, int32_t instruction) {
  const ptx::Instruction& in = f.body[instruction];
  if (in.form.operation == Operation::shl) return true;
  if (in.form.operation != Operation::add || in.operands.size() < 3 ||
      in.operands[2].kind != ptx::Operand::Kind::immediate)
    return false;
  const int32_t made = maker(f, in.operands[1], instruction);
  return made >= 0 && f.body[made].form.operation == Operation::shl;
}

/// A fused multiply-add whose addend is the literal 1: the last step of an exponential's series.
bool ends_with_one(const ptx::Function& f, int32_t instruction) {
  const ptx::Instruction& in = f.body[instruction];
  if (in.form.operation != Operation::fma || in.operands.size() < 4) return false;
  const auto is_one = [](const ptx::Operand& o) {
    return o.kind == ptx::Operand::Kind::immediate && o.bits == 0x3f800000;
  };
  const int32_t made = maker(f, in.operands[3], instruction);
  return is_one(in.operands[3]) ||
         (made >= 0 && f.body[made].form.operation == Operation::mov && is_one(f.body[made].operands[1]));
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// Line `number` (from 1), trimmed; empty where the stream ends before it.
std::string nth_line(std::istream& stream, int number) {
  std::string text;
  for (int i = 0; i < number; i++)
    if (!std::getline(stream, text)) return "";
  return trimmed(text);
}

/// The place that its cause ends with; null where it names none.
const SourceLocation* place_of_cause(const Verification& v) {
  if (v.trap) return &v.trap->where;
  if (v.origin && v.cause.starts_with("nonfinite/")) return &v.origin->where;
  const bool checks = v.cause.starts_with("check/") && v.checks && !v.checks->findings.empty();
  return checks ? &v.checks->findings.front().at.where : nullptr;
}

/// The frame of an instruction that a person would point at: the innermost one that is no wrapper. A wrapper
/// is a toolkit function or an inlined call that put at most two source lines into the program
/// (`power_of_two(x)` around one ex2). `lines_inside`: how many of them a line's call put there.
template <class LinesInside>
int32_t telling_frame(const ptx::Module& module, int32_t line, const LinesInside& lines_inside) {
  constexpr size_t kWrapperLines = 2;
  while (line >= 0 && module.lines[line].inlined_at >= 0) {
    const ptx::Line& frame = module.lines[line];
    const bool toolkit = frame.file >= 0 && ptx::is_of_toolkit(module.files[frame.file]);
    if (!toolkit && lines_inside(frame) > kWrapperLines) break;
    line = frame.inlined_at;
  }
  return line;
}

/// `telling`: of a line of the table.
template <class Telling>
SourceLocation location_by(const ptx::Module& module, int32_t function, int32_t instruction,
                           const Telling& telling) {
  SourceLocation where;
  const ptx::Function& f = module.functions[function];
  where.function = f.name;
  if (instruction < 0) return where;
  const ptx::Instruction& in = f.body[instruction];
  where.ptx_line = in.ptx_line;
  where.file = module.path;
  where.frames = ptx::inlined_frames(module, in.line);
  if (in.line < 0) return where;
  const ptx::Line& line = module.lines[telling(in.line)];
  where.line = line.line;
  if (line.file >= 0) where.file = module.files[line.file];
  return where;
}

}  // namespace

bool made_by_selection(const ptx::Function& f, int32_t instruction, size_t operand) {
  const ptx::Instruction& in = f.body[instruction];
  if (operand >= in.operands.size() || in.operands[operand].kind != ptx::Operand::Kind::reg) return false;
  const int32_t made = definition(f, in.operands[operand].reg, instruction);
  if (made < 0) return false;
  const ptx::Instruction& maker = f.body[made];
  const bool of_integer = ptx::is_signed(maker.form.type()) || ptx::is_unsigned(maker.form.type());
  if (maker.form.operation == Operation::cvt) return maker.form.types[0] == ptx::Type::f32 && of_integer;
  if (maker.form.operation != Operation::selp) return false;
  for (size_t i : {1u, 2u})
    if (maker.operands[i].kind != ptx::Operand::Kind::immediate) return false;
  return true;
}

bool is_expanded_exponential(const ptx::Function& f, int32_t instruction) {
  const ptx::Instruction& in = f.body[instruction];
  if (in.form.operation != Operation::mul || in.operands.size() < 3) return false;
  bool power = false, shifted = false;
  for (size_t i = 1; i < 3; ++i) {
    const int32_t made = maker(f, in.operands[i], instruction);
    if (made < 0) continue;
    power |= f.body[made].form.operation == Operation::ex2 || ends_with_one(f, made) ||
             is_expanded_exponential(f, made);
    shifted |= is_shifted(f, made);
  }
  return power && shifted;
}

SourceLocation location_of(const ptx::Module& module, int32_t function, int32_t instruction) {
  const auto lines_inside = [&](const ptx::Line& frame) {
    std::set<int32_t> inside;
    for (const ptx::Line& other : module.lines)
      if (other.inlined_at == frame.inlined_at && other.file == frame.file) inside.insert(other.line);
    return inside.size();
  };
  return location_by(module, function, instruction,
                     [&](int32_t line) { return telling_frame(module, line, lines_inside); });
}

Locations::Locations(const ptx::Module& module) : module_(module) {
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> inside;  // by call and file
  for (const ptx::Line& line : module.lines)
    if (line.inlined_at >= 0) inside[{line.inlined_at, line.file}].insert(line.line);
  const auto lines_inside = [&](const ptx::Line& frame) {
    return inside.at({frame.inlined_at, frame.file}).size();
  };
  for (int32_t line = 0; line < std::ssize(module.lines); ++line)
    telling_.push_back(telling_frame(module, line, lines_inside));
}

SourceLocation Locations::of(int32_t function, int32_t instruction) const {
  return location_by(module_, function, instruction,
                     [&](int32_t line) { return telling_[static_cast<size_t>(line)]; });
}

SourceLocation entry_of(const Program& plan) {
  if (plan.launches.empty()) return {};
  const Launch& launch = plan.launches.back();
  const auto named = [&](const Module& module) { return module.name == launch.module; };
  const auto text = std::find_if(plan.modules.begin(), plan.modules.end(), named);
  if (text == plan.modules.end()) return {};
  const ptx::Module module = ptx::parse_functions(*text->ptx, text->path);
  for (size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    if (function.name != launch.function || function.body.empty()) continue;
    SourceLocation where = location_of(module, static_cast<int32_t>(f), 0);
    if (where.file.empty()) where.file = text->path, where.line = where.ptx_line;
    return where;
  }
  return {};
}

SourceText::SourceText(const std::string& name) {
  const std::string kernel = name.substr(0, name.find('%'));
  for (const SourceFile& file : embedded_sources()) files_.emplace_back(file.path, file.text);
  const size_t at = kernel.find('@');
  if (at == std::string::npos) return;
  for (const Defect& defect : defects())
    if (defect.kernel == kernel.substr(0, at) && defect.name == kernel.substr(at + 1))
      files_ = apply_patch(std::move(files_), defect.patch);
}

std::string SourceText::text_of(const std::string& name) const {
  for (const auto& [path, text] : files_)
    if (path == name || name.ends_with("/" + path)) return text;
  std::ifstream file(source_root() / name);
  std::filesystem::path rest = std::filesystem::path(name).relative_path();
  while (!file && !rest.empty()) {
    file = std::ifstream(rest);
    std::filesystem::path shorter;
    for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
    rest = shorter;
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string SourceText::line(const SourceLocation& where) const {
  if (where.line <= 0 || where.file.empty()) return "";
  std::istringstream stream(text_of(where.file));
  return nth_line(stream, where.line);
}

std::string SourceText::shape(const SourceLocation& where) const {
  if (where.line <= 0 || where.file.empty()) return "";
  std::istringstream stream(text_of(where.file));
  std::vector<std::string> shapes;
  for (std::string text; static_cast<int>(shapes.size()) < where.line && std::getline(stream, text);)
    shapes.push_back(shape_of(trimmed(text)));
  if (static_cast<int>(shapes.size()) < where.line || shapes.back().empty()) return "";
  const auto number = std::count(shapes.begin(), shapes.end(), shapes.back());
  return number == 1 ? shapes.back() : fmt::format("{} #{}", shapes.back(), number);
}

SourceRange SourceText::statement_around(const SourceLocation& where) const {
  constexpr int kLongest = 20;
  const auto ends = [&](int number) {
    SourceLocation at = where;
    at.line = number;
    std::string text = line(at);
    text = text.substr(0, text.find("//"));
    text.erase(text.find_last_not_of(' ') + 1);
    return text.empty() || text.ends_with(';') || text.ends_with('{') || text.ends_with('}') ||
           text.starts_with('#');
  };
  SourceRange range{where.file, where.line, where.line};
  while (range.first > 1 && where.line - range.first < kLongest && !ends(range.first - 1)) --range.first;
  while (range.last - where.line < kLongest && !ends(range.last)) ++range.last;
  return range;
}

std::string shape_of_cause(const Verification& v) {
  const SourceLocation* const where = place_of_cause(v);
  return where ? SourceText(v.kernel).shape(own_place(*where)) : "";
}

ChainLink link_of(const ptx::Module& module, int32_t function, int32_t instruction,
                  const SourceText& source) {
  ChainLink link;
  link.where = location_of(module, function, instruction);
  const ptx::Function& f = module.functions[function];
  if (instruction >= 0) link.instruction = instruction_text(f, f.body[instruction]);
  link.text = source.line(link.where);
  return link;
}

std::vector<ChainLink> definitions_before(const ptx::Module& module, int32_t function, int32_t instruction,
                                          int depth, const SourceText& source) {
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
            links.push_back(link_of(module, function, made, source));
        }
      }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (next.size() > 64) next.resize(64);
    level = next;
  }
  return links;
}

std::optional<FoundInstruction> find_instruction(const Program& program, const SourceLocation& where) {
  for (const Module& text : program.modules) {
    const auto module = std::make_shared<const ptx::Module>(ptx::parse_functions(*text.ptx, text.path));
    for (size_t f = 0; f < module->functions.size(); ++f) {
      const std::vector<ptx::Instruction>& body = module->functions[f].body;
      if (module->functions[f].name != where.function) continue;
      const auto at = std::find_if(body.begin(), body.end(),
                                   [&](const ptx::Instruction& in) { return in.ptx_line == where.ptx_line; });
      if (at != body.end())
        return FoundInstruction{module, static_cast<int32_t>(f), static_cast<int32_t>(at - body.begin())};
    }
  }
  return std::nullopt;
}

}  // namespace assay
