// Function bodies: scopes, register and variable declarations, labels, instructions and their operands.
#include "src/ptx/parser.h"
#include "src/ptx/type.h"

namespace assay::ptx {

void Parser::body() {
  scopes_.assign(1, Scope{});
  scope_ = 0;
  label_uses_.clear();
  current_line_ = -1;
  while (!(lex_.peek() == '}' && scope_ == 0)) {
    if (lex_.at_end()) lex_.fail("function " + function_->name + " is not closed");
    statement();
  }
  lex_.expect('}');
  resolve_labels();
  function_ = nullptr;
}

void Parser::statement() {
  if (lex_.accept(';')) return;
  if (lex_.accept('{')) {
    scopes_.push_back(Scope{scope_, {}, {}, {}, {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
    return;
  }
  if (lex_.accept('}')) {
    scope_ = scopes_[static_cast<size_t>(scope_)].parent;
    return;
  }
  if (lex_.peek() == '.') {
    const size_t start = lex_.position();
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
    else if (word == "global")
      space = Space::global;
    else if (word == "const")
      space = Space::constant;
    else {
      lex_.rewind(start);
      lex_.fail("unknown directive ." + word);
    }
    do {
      function_->variables.push_back(variable(space, false));
      scopes_[static_cast<size_t>(scope_)].variables[function_->variables.back().name] =
          static_cast<int32_t>(function_->variables.size()) - 1;
    } while (lex_.accept(','));
    return lex_.expect(';');
  }
  const size_t start = lex_.position();
  const std::string name(lex_.name());
  if (!name.empty() && lex_.peek() == ':') {
    lex_.expect(':');
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
      scopes_[static_cast<size_t>(scope_)].labels[name] = static_cast<int32_t>(function_->body.size());
      function_->labels.emplace_back(name, static_cast<int32_t>(function_->body.size()));
      return;
    }
  }
  lex_.rewind(start);
  instruction();
}

void Parser::registers() {
  const auto type = type_named(lex_.directive());
  if (!type) lex_.fail("register declaration without a known type (vectors of registers are not supported)");
  auto& names = scopes_[static_cast<size_t>(scope_)].registers;
  auto declare = [&](std::string name) {
    names[name] = static_cast<int32_t>(function_->registers.size());
    function_->registers.push_back(Register{std::move(name), *type});
  };
  do {
    const std::string name(lex_.name());
    if (name.empty()) lex_.fail("expected a register name");
    if (lex_.accept('<')) {
      const int64_t count = lex_.integer();
      if (count < 0 || count > 1'000'000) lex_.fail("implausible register count");
      lex_.expect('>');
      for (int64_t i = 0; i < count; ++i) declare(name + std::to_string(i));
    } else {
      declare(name);
    }
  } while (lex_.accept(','));
  lex_.expect(';');
}

/// .loc file line column{, function_name label{+offset}, inlined_at file line column}
void Parser::loc_directive() {
  const auto file = static_cast<int32_t>(lex_.integer());
  const auto line = static_cast<int32_t>(lex_.integer());
  const auto column = static_cast<int32_t>(lex_.integer());
  int32_t inlined_at = -1;
  while (lex_.accept(',')) {
    const std::string word(lex_.name());
    if (word == "function_name") {
      if (lex_.name().empty()) lex_.fail("expected a label after function_name");
      if (lex_.accept('+')) lex_.integer();
    } else if (word == "inlined_at") {
      const auto site_file = static_cast<int32_t>(lex_.integer());
      const auto site_line = static_cast<int32_t>(lex_.integer());
      const auto site_column = static_cast<int32_t>(lex_.integer());
      // The call site is itself a location, perhaps inlined: the last one with these numbers.
      for (int32_t i = static_cast<int32_t>(module_.lines.size()) - 1; i >= 0 && inlined_at < 0; --i) {
        const Line& known = module_.lines[static_cast<size_t>(i)];
        if (known.file == site_file && known.line == site_line && known.column == site_column) inlined_at = i;
      }
      if (inlined_at < 0) inlined_at = line_index(site_file, site_line, site_column, -1);
    } else {
      lex_.fail("unknown attribute of .loc: " + word);
    }
  }
  current_line_ = line_index(file, line, column, inlined_at);
}

int32_t Parser::line_index(int32_t file, int32_t line, int32_t column, int32_t inlined_at) {
  module_.lines.push_back(Line{file, line, column, inlined_at});
  return static_cast<int32_t>(module_.lines.size()) - 1;
}

void Parser::branch_targets(const std::string& name) {
  auto& table = scopes_[static_cast<size_t>(scope_)].branch_tables[name];
  do {
    table.emplace_back(lex_.name());
  } while (lex_.accept(','));
  lex_.expect(';');
}

void Parser::instruction() {
  Instruction made;
  made.ptx_line = lex_.line();
  made.ptx_column = lex_.column();
  made.line = current_line_;
  const size_t start = lex_.position();
  if (lex_.accept('@')) {
    made.predicate_negated = lex_.accept('!');
    const std::string name(lex_.name());
    Operand guard;
    if (!resolve_name(name, guard) || guard.kind != Operand::Kind::reg)
      lex_.fail("unknown predicate " + name);
    made.predicate = guard.reg;
  }
  made.opcode = std::string(lex_.opcode());
  if (made.opcode.empty()) lex_.fail("expected an instruction");
  while (!lex_.accept(';')) {
    made.operands.push_back(operand());
    if (lex_.peek() != ';') lex_.expect(',');
  }
  function_->body.push_back(std::move(made));
  const Instruction& added = function_->body.back();
  for (size_t i = 0; i < added.operands.size(); ++i) {
    std::vector<size_t> path{i};
    note_labels(added.operands[i], path, start);
  }
}

Operand Parser::operand() {
  Operand first = simple_operand();
  if (!lex_.accept('|')) return first;
  Operand pair;
  pair.kind = Operand::Kind::pair;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(simple_operand());
  return pair;
}

Operand Parser::simple_operand() {
  if (lex_.accept('{')) return list('}');
  if (lex_.accept('(')) return list(')');
  if (lex_.accept('[')) return address();
  if (lex_.accept('!')) {
    Operand result = named(std::string(lex_.name()));
    result.negated = true;
    return result;
  }
  if (lex_.number_next()) {
    const Literal literal = lex_.literal();
    Operand result;
    result.kind = Operand::Kind::immediate;
    result.bits = literal.bits;
    result.is_float_literal = literal.is_float;
    result.literal_bytes = literal.float_bytes;
    return result;
  }
  const std::string name(lex_.name());
  if (name.empty()) lex_.fail("expected an operand");
  if (name == "_") {
    Operand result;
    result.kind = Operand::Kind::sink;
    return result;
  }
  Operand result = named(name);
  if (result.kind == Operand::Kind::symbol || (result.kind == Operand::Kind::label && lex_.peek() == '+')) {
    if (lex_.accept('+')) result.offset = lex_.integer();
  }
  return result;
}

Operand Parser::list(char close) {
  Operand result;
  result.kind = Operand::Kind::vector;
  while (!lex_.accept(close)) {
    result.elements.push_back(simple_operand());
    if (lex_.peek() != close) lex_.expect(',');
  }
  return result;
}

/// After '[': register, symbol or number, then any offsets; {..} coordinates of tensor instructions become
/// elements.
Operand Parser::address() {
  Operand result;
  if (lex_.number_next()) {
    result.offset = lex_.integer();
  } else {
    result = named(std::string(lex_.name()));
    if (result.kind == Operand::Kind::label) lex_.fail("unknown name " + result.name + " in an address");
  }
  result.kind = Operand::Kind::address;
  while (lex_.peek() == '+' || lex_.peek() == '-') {
    const size_t start = lex_.position();
    lex_.accept('+');
    if (!lex_.number_next()) {
      lex_.rewind(start);
      lex_.fail("expected a constant offset");
    }
    result.offset += lex_.integer();
  }
  while (lex_.accept(',')) result.elements.push_back(simple_operand());
  lex_.expect(']');
  return result;
}

/// A register, variable, parameter or special register by name; anything else may become a label or a
/// function.
Operand Parser::named(const std::string& name) {
  Operand result;
  if (name.empty()) lex_.fail("expected a name");
  if (resolve_name(name, result)) return result;
  if (name[0] == '%') {
    result.kind = Operand::Kind::special;
    result.name = name;
    const size_t start = lex_.position();
    const std::string component(lex_.directive());
    if (component == "x" || component == "y" || component == "z" || component == "w")
      result.name += "." + component;
    else if (!component.empty())
      lex_.rewind(start);
    static constexpr std::string_view known[] = {"%tid",
                                                 "%ntid",
                                                 "%ctaid",
                                                 "%nctaid",
                                                 "%laneid",
                                                 "%warpid",
                                                 "%nwarpid",
                                                 "%smid",
                                                 "%nsmid",
                                                 "%gridid",
                                                 "%clock",
                                                 "%clock_hi",
                                                 "%clock64",
                                                 "%globaltimer",
                                                 "%globaltimer_lo",
                                                 "%globaltimer_hi",
                                                 "%lanemask_eq",
                                                 "%lanemask_le",
                                                 "%lanemask_lt",
                                                 "%lanemask_ge",
                                                 "%lanemask_gt",
                                                 "%dynamic_smem_size",
                                                 "%total_smem_size",
                                                 "%is_explicit_cluster",
                                                 "%clusterid",
                                                 "%nclusterid",
                                                 "%cluster_ctaid",
                                                 "%cluster_nctaid",
                                                 "%cluster_ctarank",
                                                 "%cluster_nctarank",
                                                 "%reserved_smem_offset_begin",
                                                 "%reserved_smem_offset_end",
                                                 "%reserved_smem_offset_cap",
                                                 "%aggr_smem_size",
                                                 "%current_graph_exec"};
    for (const std::string_view special : known)
      if (special == name) return result;
    if (name.starts_with("%pm") || name.starts_with("%envreg") || name.starts_with("%reserved_smem_offset_"))
      return result;
    lex_.fail("register " + name + " is not declared");
  }
  result.kind = Operand::Kind::label;
  result.name = name;
  return result;
}

bool Parser::resolve_name(const std::string& name, Operand& result) const {
  for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const Scope& here = scopes_[static_cast<size_t>(scope)];
    if (const auto found = here.registers.find(name); found != here.registers.end()) {
      result.kind = Operand::Kind::reg;
      result.reg = found->second;
      return true;
    }
    if (const auto found = here.variables.find(name); found != here.variables.end()) {
      result.kind = Operand::Kind::symbol;
      result.symbol = -2 - found->second;  // made absolute once the module's variables are counted
      result.name = name;
      return true;
    }
  }
  for (size_t i = 0; i < function_->parameters.size() + function_->returns.size(); ++i) {
    const size_t inputs = function_->parameters.size();
    const Parameter& parameter = i < inputs ? function_->parameters[i] : function_->returns[i - inputs];
    if (parameter.name != name) continue;
    result.kind = Operand::Kind::symbol;
    result.parameter = static_cast<int32_t>(i);
    result.name = name;
    return true;
  }
  if (const auto found = module_variables_.find(name); found != module_variables_.end()) {
    result.kind = Operand::Kind::symbol;
    result.symbol = found->second;
    result.name = name;
    return true;
  }
  return false;
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
  for (int scope = use.scope; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const Scope& here = scopes_[static_cast<size_t>(scope)];
    if (const auto found = here.labels.find(operand.name); found != here.labels.end()) {
      operand.target = found->second;
      return;
    }
    if (here.prototypes.contains(operand.name)) return;
    if (const auto table = here.branch_tables.find(operand.name); table != here.branch_tables.end()) {
      const std::vector<std::string> names = table->second;
      operand = Operand{};
      operand.kind = Operand::Kind::vector;
      for (const std::string& name : names) {
        Operand label;
        label.kind = Operand::Kind::label;
        label.name = name;
        resolve_label(label, use);
        operand.elements.push_back(std::move(label));
      }
      return;
    }
  }
  if (function_index_.contains(operand.name)) {
    operand.kind = Operand::Kind::symbol;
    return;
  }
  lex_.rewind(use.position);
  lex_.fail("unknown name " + operand.name);
}

}  // namespace assay::ptx
