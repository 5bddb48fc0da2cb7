// Operands of instructions: registers, literals, addresses, lists, and what a name means.
#include <algorithm>

#include "src/base/ptx/parser.h"

namespace assay::ptx {
namespace {

constexpr int deepest_operand = 8;

bool names_begin_with(char c) {
  return c == '%' || c == '_' || c == '$' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

/// Most operands are a register and no more: it is made where it will be. False: nothing was taken.
bool Parser::plain_register() {
  const size_t start = lex_.next_position();
  if (lex_.peek() != '%') return false;
  const std::string_view name = lex_.name();
  const char after = lex_.peek();
  Operand& made = operands_.emplace_back();
  if ((after == ',' || after == ';') && resolve_name(name, made) && made.kind == Operand::Kind::reg)
    return true;
  operands_.pop_back();
  lex_.rewind(start);
  return false;
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
    Operand result = named();
    result.negated = true;
    return result;
  }
  const size_t before = lex_.position();
  if (lex_.accept('-') && names_begin_with(lex_.peek())) {  // a negated operand of vmad
    Operand result = named();
    if (result.kind != Operand::Kind::reg) lex_.fail("expected a number");
    result.negated = true;
    return with_part(std::move(result));
  }
  lex_.rewind(before);
  if (lex_.number_next()) {
    const Literal literal = lex_.literal();
    Operand result;
    result.kind = Operand::Kind::immediate;
    result.bits = literal.bits;
    result.is_float_literal = literal.is_float;
    result.literal_bytes = literal.float_bytes;
    return result;
  }
  const size_t start = lex_.next_position();
  const std::string_view name = lex_.name();
  if (name.empty()) lex_.fail("expected an operand");
  if (name == "_") {
    Operand result;
    result.kind = Operand::Kind::sink;
    return result;
  }
  if (name == "WARP_SZ") {
    Operand result;
    result.kind = Operand::Kind::immediate;
    result.bits = 32;
    return result;
  }
  lex_.rewind(start);
  Operand result = named();
  if (result.kind == Operand::Kind::symbol || (result.kind == Operand::Kind::label && lex_.peek() == '+')) {
    if (lex_.accept('+')) result.offset = lex_.integer();
  }
  return with_part(std::move(result));
}

/// "%r1.b2", "%r1.h10": a register of a video instruction has the part for its name.
Operand Parser::with_part(Operand operand) {
  if (operand.kind == Operand::Kind::reg && lex_.peek() == '.') operand.name = lex_.directive();
  return operand;
}

Operand Parser::list(char close) {
  Operand result;
  result.kind = Operand::Kind::vector;
  if (operand_depth_ == deepest_operand) lex_.fail("operands are nested too deep");
  ++operand_depth_;
  while (!lex_.accept(close)) {
    result.elements.push_back(simple_operand());
    if (lex_.peek() != close) lex_.expect(',');
  }
  --operand_depth_;
  return result;
}

/// After '[': register, symbol or number, then any offsets; {..} coordinates of tensor instructions become
/// elements.
Operand Parser::address() {
  Operand result;
  if (lex_.number_next()) {
    result.offset = lex_.integer();
  } else {
    const size_t at = lex_.next_position();
    result = named();
    if (result.kind == Operand::Kind::label)
      lex_.fail_at(at, "unknown name " + result.name + " in an address");
    if (result.kind == Operand::Kind::special)
      lex_.fail_at(at, "special register " + result.name + " in an address: move it to a register first");
  }
  result.kind = Operand::Kind::address;
  while (lex_.peek() == '+' || lex_.peek() == '-') {
    const size_t start = lex_.position();
    lex_.accept('+');
    if (!lex_.number_next()) {
      lex_.rewind(start);
      lex_.fail("expected a constant offset");
    }
    const auto more = static_cast<uint64_t>(lex_.integer());
    result.offset = static_cast<int64_t>(static_cast<uint64_t>(result.offset) + more);
  }
  while (lex_.accept(',')) result.elements.push_back(simple_operand());
  lex_.expect(']');
  return result;
}

/// A register, variable, parameter or special register by name; anything else may become a label or a
/// function.
Operand Parser::named() {
  const size_t at = lex_.next_position();
  const std::string_view name = lex_.name();
  Operand result;
  if (name.empty()) lex_.fail("expected a name");
  if (resolve_name(name, result)) return result;
  if (name[0] == '%') return special(name, at);
  result.kind = Operand::Kind::label;
  result.name = name;
  return result;
}

/// %tid.x, %laneid: vectors need a component, the others have none.
Operand Parser::special(std::string_view name, size_t position) {
  static constexpr std::string_view vectors[] = {
      "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"};
  static constexpr std::string_view scalars[] = {"%laneid",
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
                                                 "%aggr_smem_size",
                                                 "%is_explicit_cluster",
                                                 "%cluster_ctarank",
                                                 "%cluster_nctarank",
                                                 "%current_graph_exec"};
  auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  const bool numbered =
      name.starts_with("%pm") || name.starts_with("%envreg") || name.starts_with("%reserved_smem_offset_");
  Operand result;
  result.kind = Operand::Kind::special;
  result.name = name;
  if (in(vectors)) {
    const std::string component(lex_.directive());
    if (component.size() != 1 || component.find_first_of("xyzw") != 0)
      lex_.fail_at(position, std::string(name) + " needs one of its components .x, .y, .z");
    result.name += "." + component;
  } else if (!in(scalars) && !numbered) {
    lex_.fail_at(position, "register " + std::string(name) + " is not declared");
  }
  return result;
}

bool Parser::resolve_name(std::string_view name, Operand& result) {
  for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    Scope& here = scopes_[static_cast<size_t>(scope)];
    if (find_register(here, name, result)) return true;
    if (const auto found = here.variables.find(name); found != here.variables.end()) {
      result.kind = Operand::Kind::symbol;
      result.symbol = -2 - found->second;  // made absolute once the module's variables are counted
      result.name = name;
      return true;
    }
  }
  if (const auto found = parameters_.find(name); found != parameters_.end()) {
    result.kind = Operand::Kind::symbol;
    result.parameter = found->second;
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

}  // namespace assay::ptx
