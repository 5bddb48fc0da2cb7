// Function bodies: scopes, register and variable declarations, labels, instructions. Their operands are in
// parser_operands.cpp.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/parser.h"
#include "src/base/ptx/type.h"

namespace assay::ptx {
namespace {

// Deeper than any compiler nests; what follows recursion or walks outwards stays quick.
constexpr int deepest_scope = 256;
constexpr size_t longest_site = 4096;  // of a comment's chain of calls
constexpr int64_t most_registers = 1'000'000;
constexpr size_t most_spare = size_t{1} << 16;  // instructions

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Empty; with the room that the bodies before it in this thread took.
std::vector<Instruction>& spare_body() {
  static thread_local std::vector<Instruction> spare;
  spare.clear();
  return spare;
}

/// The body moves into a place of its size, and leaves its room to the next.
void keep_spare(std::vector<Instruction>& body) {
  std::vector<Instruction> exact(std::move_iterator(body.begin()), std::move_iterator(body.end()));
  if (body.capacity() <= most_spare) spare_body() = std::move(body);
  body = std::move(exact);
}

}  // namespace

void Parser::body() {
  scopes_.assign(1, Scope{});
  scope_ = 0;
  label_uses_.clear();
  current_line_ = -1;
  function_->body = std::move(spare_body());
  while (!(lex_.peek() == '}' && scope_ == 0)) {
    if (lex_.at_end()) lex_.fail("function " + function_->name + " is not closed");
    statement();
  }
  lex_.expect('}');
  resolve_labels();
  keep_spare(function_->body);
  function_ = nullptr;
}

/// What is wrong in one body is wrong of its function alone, as long as the text goes on behind its brace.
void Parser::body_apart() {
  const size_t start = lex_.position();
  Function& made = *function_;
  try {
    body();
  } catch (const BadInput& reason) {
    made.refused = reason.what();
    made.body.clear(), made.registers.clear(), made.variables.clear(), made.labels.clear();
    function_ = nullptr;
    operand_depth_ = 0;
    lex_.rewind(start);
    lex_.skip_braces();
  }
}

void Parser::statement() {
  const size_t start = lex_.next_position();
  if (lex_.accept(';')) return;
  if (lex_.accept('{')) return open_scope(start);
  if (lex_.accept('}')) {
    scope_ = scopes_[static_cast<size_t>(scope_)].parent;
    return;
  }
  if (lex_.peek() == '.') {
    const std::string word(lex_.directive());
    Space space = Space::none;
    if (word == "reg") return registers();
    if (word == "loc") return loc_directive();
    if (word == "pragma") return lex_.skip_statement();
    if (word == "file") return file_directive();
    if (word == "shared")
      space = Space::shared;
    else if (word == "local")
      space = Space::local;
    else if (word == "param")
      space = Space::param;
    else if (word == "global" || word == "const")
      lex_.fail_at(start, "a ." + word + " variable inside a function is not supported: declare it outside");
    else
      lex_.fail_at(start, "unknown directive ." + word);
    do {
      const size_t at = lex_.next_position();
      function_->variables.push_back(variable(space, false));
      const std::string& name = function_->variables.back().name;
      auto& names = scopes_[static_cast<size_t>(scope_)].variables;
      if (!names.try_emplace(name, static_cast<int32_t>(function_->variables.size()) - 1).second)
        lex_.fail_at(at, "variable " + name + " is declared twice");
    } while (lex_.accept(','));
    return lex_.expect(';');
  }
  const std::string_view as_written = lex_.name();
  if (!as_written.empty() && lex_.peek() == ':') {
    lex_.expect(':');
    const std::string name(as_written);
    if (lex_.peek() != ':') {
      if (lex_.peek() == '.') {
        const size_t at = lex_.position();
        const std::string word(lex_.directive());
        if (word == "branchtargets") return branch_targets(name);
        if (word == "callprototype" || word == "calltargets") {
          scopes_[static_cast<size_t>(scope_)].prototypes.insert(name);
          return lex_.skip_statement();
        }
        lex_.rewind(at);
      }
      auto& labels = scopes_[static_cast<size_t>(scope_)].labels;
      if (!labels.try_emplace(name, static_cast<int32_t>(function_->body.size())).second)
        lex_.fail_at(start, "label " + name + " is defined twice");
      function_->labels.emplace_back(name, static_cast<int32_t>(function_->body.size()));
      return;
    }
  }
  lex_.rewind(start);
  instruction();
}

void Parser::open_scope(size_t position) {
  const int depth = scopes_[static_cast<size_t>(scope_)].depth + 1;
  if (depth > deepest_scope) lex_.fail_at(position, "blocks are nested too deep");
  scopes_.emplace_back();
  scopes_.back().parent = scope_;
  scopes_.back().depth = depth;
  scope_ = static_cast<int>(scopes_.size()) - 1;
}

void Parser::registers() {
  const size_t start = lex_.next_position();
  const auto type = type_named(lex_.directive());
  if (!type)
    lex_.fail_at(start, "register declaration without a known type (vectors of registers are not supported)");
  Scope& scope = scopes_[static_cast<size_t>(scope_)];
  do {
    const size_t at = lex_.next_position();
    const std::string_view name = lex_.name();
    if (name.empty()) lex_.fail("expected a register name");
    bool is_new = false;
    if (lex_.accept('<')) {
      const int64_t count = lex_.integer("the number of registers", 0, most_registers);
      lex_.expect('>');
      is_new = std::none_of(scope.register_ranges.begin(), scope.register_ranges.end(),
                            [&](const RegisterRange& range) { return range.name == name; });
      if (is_new) scope.register_ranges.push_back({name, *type, count, {}});
      scope.digits_are_numbers &= !is_digit(name.back());
    } else {
      Operand known;
      is_new = !find_register(scope, name, known);
      if (is_new) scope.registers.emplace(name, make_register(name, *type));
    }
    if (!is_new) lex_.fail_at(at, "register " + std::string(name) + " is declared twice");
  } while (lex_.accept(','));
  lex_.expect(';');
}

int32_t Parser::make_register(std::string_view name, Type type) {
  const auto index = static_cast<int32_t>(function_->registers.size());
  function_->registers.push_back(Register{std::string(name), type});
  return index;
}

/// By its name, or as a member of a range: "%r12" is number 12 of "%r<20>" or number 2 of "%r1<5>", and stays
/// what it was first.
bool Parser::find_register(Scope& scope, std::string_view name, Operand& result) {
  result.kind = Operand::Kind::reg;
  if (!scope.registers.empty())
    if (const auto found = scope.registers.find(name); found != scope.registers.end()) {
      result.reg = found->second;
      return true;
    }
  if (scope.register_ranges.empty()) return false;
  RegisterRange* member_of = nullptr;
  size_t member = 0;
  int64_t number = 0, unit = 1;
  for (size_t at = name.size(); at-- > 1 && is_digit(name[at]) && unit <= most_registers; unit *= 10) {
    number += (name[at] - '0') * unit;
    if (scope.digits_are_numbers && is_digit(name[at - 1])) continue;
    if (name[at] == '0' && at + 1 < name.size()) continue;  // no number starts with 0
    const auto index = static_cast<size_t>(number);
    for (RegisterRange& range : scope.register_ranges) {
      if (number >= range.count || range.name.size() != at || range.name.back() != name[at - 1] ||
          !name.starts_with(range.name))
        continue;
      if (index < range.made.size() && range.made[index] >= 0) {
        result.reg = range.made[index];
        return true;
      }
      if (!member_of) member_of = &range, member = index;
    }
  }
  if (!member_of) return false;
  if (member >= member_of->made.size()) member_of->made.resize(member + 1, -1);
  result.reg = member_of->made[member] = make_register(name, member_of->type);
  return true;
}

/// .loc file line column{, function_name label{+offset}, inlined_at file line column}
void Parser::loc_directive() {
  auto number = [this] { return static_cast<int32_t>(lex_.integer("a number of .loc", 0, INT32_MAX)); };
  // Of several lines of assembly, later LLVM counts each as one more line of the source.
  const bool counts_assembly = lex_.in_inline_assembly();
  const int32_t file = number(), line = number(), column = number();
  int32_t inlined_at = commented_site(lex_.rest_of_line());
  while (lex_.accept(',')) {
    const std::string_view word = lex_.name();
    if (word == "function_name") {
      if (lex_.name().empty()) lex_.fail("expected a label after function_name");
      if (lex_.accept('+')) lex_.integer();
    } else if (word == "inlined_at") {
      const int32_t site_file = number(), site_line = number(), site_column = number();
      // The call site is itself a location, perhaps inlined: the last one with these numbers.
      const auto known = line_numbers_.find({site_file, site_line, site_column});
      inlined_at =
          known != line_numbers_.end() ? known->second : line_index(site_file, site_line, site_column, -1);
    } else {
      lex_.fail("unknown attribute of .loc: " + std::string(word));
    }
  }
  if (!counts_assembly) current_line_ = line_index(file, line, column, inlined_at);
}

/// LLVM writes where inlined code was called only into the comment behind .loc (Triton's PTX):
/// "// a.py:263:15 @[ b.py:343:60 @[ c.py:47:39 ] ]", innermost first. The index of the call site's line; -1
/// where the comment says nothing of the kind.
int32_t Parser::commented_site(std::string_view rest) {
  if (rest.find('@') == std::string_view::npos) return -1;  // looked for quickly: most lines have none
  const size_t at = rest.find(" @[ "), end = rest.rfind(" ]");
  if (at == std::string_view::npos || end == std::string_view::npos || end < at + 4 || end > longest_site)
    return -1;
  const std::string chain(rest.substr(at + 4, end - at - 4));
  if (const auto known = commented_sites_.find(chain); known != commented_sites_.end()) return known->second;
  const std::string site = chain.substr(0, chain.find(" @[ "));
  const size_t second = site.rfind(':'),
               first = second == 0 ? std::string::npos : site.rfind(':', second - 1);
  int32_t line = 0, column = 0;
  const auto read = [&](size_t from, size_t to, int32_t& number) {
    return std::from_chars(site.data() + from, site.data() + to, number).ptr == site.data() + to;
  };
  if (second == std::string::npos || first == std::string::npos || !read(first + 1, second, line) ||
      !read(second + 1, site.size(), column))
    return -1;
  const int32_t outer = commented_site(chain);
  module_.lines.push_back(Line{0, line, column, outer});
  const auto index = static_cast<int32_t>(module_.lines.size()) - 1;
  commented_files_.emplace_back(index, site.substr(0, first));  // .file may come at the text's end
  commented_sites_[chain] = index;
  return index;
}

int32_t Parser::line_index(int32_t file, int32_t line, int32_t column, int32_t inlined_at) {
  module_.lines.push_back(Line{file, line, column, inlined_at});
  return line_numbers_[{file, line, column}] = static_cast<int32_t>(module_.lines.size()) - 1;
}

void Parser::branch_targets(const std::string& name) {
  auto& table = scopes_[static_cast<size_t>(scope_)].branch_tables[name];
  do {
    table.emplace_back(lex_.name());
    if (table.back().empty()) lex_.fail("expected a label");
  } while (lex_.accept(','));
  lex_.expect(';');
}

/// Of the opcode, and for mov what only the operands tell.
Form Parser::form(const Instruction& instruction) {
  const auto [known, is_new] = forms_.try_emplace(instruction.opcode);
  if (is_new) known->second = form_of(instruction.opcode);
  Form form = known->second;
  if (form.operation == Operation::mov && instruction.operands.size() == 2) {
    form.is_unpack = instruction.operands[0].kind == Operand::Kind::vector;
    form.is_pack = !form.is_unpack && instruction.operands[1].kind == Operand::Kind::vector;
  }
  return form;
}

void Parser::instruction() {
  Instruction made;
  made.ptx_line = lex_.line();
  made.ptx_column = lex_.column();
  made.line = current_line_;
  const size_t start = lex_.next_position();
  if (lex_.accept('@')) {
    made.predicate_negated = lex_.accept('!');
    const size_t at = lex_.next_position();
    const std::string_view name = lex_.name();
    Operand guard;
    if (!resolve_name(name, guard) || guard.kind != Operand::Kind::reg)
      lex_.fail_at(at, "unknown predicate " + std::string(name));
    made.predicate = guard.reg;
  }
  made.opcode = std::string(lex_.opcode());
  if (made.opcode.empty()) lex_.fail("expected an instruction");
  while (lex_.accept('.')) made.opcode += "." + std::string(lex_.opcode());  // "xor  .b32"
  operands_.clear();
  while (!lex_.accept(';')) {
    if (!plain_register()) operands_.push_back(operand());
    if (lex_.peek() != ';') lex_.expect(',');
  }
  made.operands.assign(std::move_iterator(operands_.begin()), std::move_iterator(operands_.end()));
  made.form = form(made);
  function_->body.push_back(std::move(made));
  const Instruction& added = function_->body.back();
  for (size_t i = 0; i < added.operands.size(); ++i) {
    if (added.operands[i].kind != Operand::Kind::label && added.operands[i].elements.empty()) continue;
    std::vector<size_t> path{i};
    note_labels(added.operands[i], path, start);
  }
}

void Parser::note_labels(const Operand& operand, std::vector<size_t>& path, size_t position) {
  if (operand.kind == Operand::Kind::label)
    label_uses_.push_back(LabelUse{function_->body.size() - 1, path, scope_, position});
  for (size_t i = 0; i < operand.elements.size(); ++i) {
    path.push_back(i);
    note_labels(operand.elements[i], path, position);
    path.pop_back();
  }
}

void Parser::resolve_labels() {
  for (const LabelUse& use : label_uses_) {
    Operand* operand = &function_->body[use.instruction].operands[use.path[0]];
    for (size_t i = 1; i < use.path.size(); ++i) operand = &operand->elements[use.path[i]];
    resolve_label(*operand, use);
  }
}

/// A label of an enclosing scope, a branch table (becomes a vector of labels), or a function.
void Parser::resolve_label(Operand& operand, const LabelUse& use) {
  operand.target = target_of(operand.name, use);
  if (operand.target >= 0) return;
  for (int scope = use.scope; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const Scope& here = scopes_[static_cast<size_t>(scope)];
    if (here.prototypes.contains(operand.name)) return;
    const auto table = here.branch_tables.find(operand.name);
    if (table == here.branch_tables.end()) continue;
    operand = Operand{};
    operand.kind = Operand::Kind::vector;
    for (const std::string& name : table->second) {
      Operand label;
      label.kind = Operand::Kind::label;
      label.name = name;
      label.target = target_of(name, use);
      if (label.target < 0) lex_.fail_at(use.position, "unknown name " + name);
      operand.elements.push_back(std::move(label));
    }
    return;
  }
  if (function_index_.contains(operand.name)) {
    operand.kind = Operand::Kind::symbol;
    return;
  }
  lex_.fail_at(use.position, "unknown name " + operand.name);
}

/// Instruction index of a label of an enclosing scope; -1: there is none.
int32_t Parser::target_of(const std::string& name, const LabelUse& use) {
  for (int scope = use.scope; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const Scope& here = scopes_[static_cast<size_t>(scope)];
    if (const auto found = here.labels.find(name); found != here.labels.end()) return found->second;
  }
  return -1;
}

}  // namespace assay::ptx
