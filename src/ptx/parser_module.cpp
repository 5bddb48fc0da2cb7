// Module scope: directives, variables, functions and their parameters.
#include <algorithm>
#include <cstring>

#include "src/ptx/parser.h"
#include "src/ptx/type.h"

namespace assay::ptx {
namespace {

int64_t align_up(int64_t value, int64_t align) {
  return (value + align - 1) / align * align;
}

Space space_named(std::string_view word) {
  if (word == "shared" || word.starts_with("shared::")) return Space::shared;
  if (word == "global") return Space::global;
  if (word == "const") return Space::constant;
  if (word == "local") return Space::local;
  if (word == "param") return Space::param;
  return Space::none;
}

}  // namespace

Parser::Parser(std::string_view text, std::string path) : lex_(text, path) {
  module_.path = std::move(path);
}

Module parse(std::string_view text, std::string path) {
  return Parser(text, std::move(path)).module();
}

Module Parser::module() {
  while (!lex_.at_end()) module_statement();
  if (module_.version.empty()) lex_.fail("no .version directive: this is not PTX text");
  finish();
  return std::move(module_);
}

void Parser::module_statement() {
  if (lex_.accept(';')) return;
  bool external = false;
  for (;;) {
    const size_t start = lex_.position();
    const std::string word(lex_.directive());
    if (word.empty()) lex_.fail("expected a directive");
    if (word == "visible" || word == "weak" || word == "common") continue;
    if (word == "extern") {
      external = true;
      continue;
    }
    if (word == "version") {
      module_.version = std::string(lex_.opcode());
    } else if (word == "target") {
      do {
        if (!module_.target.empty()) module_.target += ",";
        module_.target += std::string(lex_.name());
      } while (lex_.accept(','));
    } else if (word == "address_size") {
      if (lex_.integer() != 64) lex_.fail("only .address_size 64 is supported");
    } else if (word == "file") {
      file_directive();
    } else if (word == "section") {
      lex_.directive();
      lex_.expect('{');
      lex_.skip_braces();
    } else if (word == "entry" || word == "func") {
      function(word == "entry");
    } else if (word == "pragma" || word == "alias") {
      lex_.skip_statement();
    } else if (const Space space = space_named(word); space != Space::none && space != Space::param) {
      do {
        module_.variables.push_back(variable(space, external));
        module_variables_[module_.variables.back().name] = static_cast<int32_t>(module_.variables.size()) - 1;
      } while (lex_.accept(','));
      lex_.expect(';');
    } else {
      lex_.rewind(start);
      lex_.fail("unknown directive ." + word);
    }
    return;
  }
}

void Parser::file_directive() {
  const int64_t number = lex_.integer();
  std::string name = lex_.quoted();
  while (lex_.accept(',')) lex_.integer();  // time stamp, size
  file_numbers_[number] = static_cast<int32_t>(module_.files.size());
  module_.files.push_back(std::move(name));
}

void Parser::function(bool entry) {
  Function made;
  made.entry = entry;
  if (lex_.peek() == '(') parameter_list(made.returns);
  made.name = std::string(lex_.name());
  if (made.name.empty()) lex_.fail("expected a function name");
  if (lex_.peek() == '(') parameter_list(made.parameters);

  const auto found = function_index_.find(made.name);
  if (found == function_index_.end()) {
    function_index_[made.name] = module_.functions.size();
    module_.functions.push_back(std::move(made));
    function_ = &module_.functions.back();
  } else {
    function_ = &module_.functions[found->second];
    if (!function_->defined) *function_ = std::move(made);
  }
  function_attributes();
  if (lex_.accept(';')) return;
  if (function_->defined) lex_.fail("function " + function_->name + " is defined twice");
  lex_.expect('{');
  function_->defined = true;
  body();
}

/// .maxntid, .reqntid, .minnctapersm, .maxnreg, .noreturn, .pragma ... between the parameters and the body.
void Parser::function_attributes() {
  while (lex_.peek() == '.') {
    const std::string word(lex_.directive());
    if (word == "pragma") {
      lex_.skip_statement();
      continue;
    }
    std::vector<int64_t> numbers;
    while (lex_.number_next()) {
      numbers.push_back(lex_.integer());
      if (!lex_.accept(',')) break;
    }
    const bool extent = word == "maxntid" || word == "reqntid";
    if (!extent || numbers.empty()) continue;
    if (numbers.size() > 3) lex_.fail("." + word + " has at most 3 dimensions");
    numbers.resize(3, 1);
    for (const int64_t number : numbers)
      if (number < 1 || number > 1024) lex_.fail("." + word + " is out of range");
    if (word == "maxntid")
      function_->max_threads = static_cast<int32_t>(numbers[0] * numbers[1] * numbers[2]);
    else
      std::copy(numbers.begin(), numbers.end(), function_->required_block.begin());
  }
}

void Parser::parameter_list(std::vector<Parameter>& list) {
  lex_.expect('(');
  int64_t offset = 0;
  while (!lex_.accept(')')) {
    Parameter parameter;
    int64_t vector = 1;
    if (lex_.directive() != "param") lex_.fail("expected .param (parameters in registers are not supported)");
    while (lex_.peek() == '.') {
      const std::string word(lex_.directive());
      if (word == "align")
        parameter.align = static_cast<int32_t>(lex_.integer());
      else if (word == "v2")
        vector = 2;
      else if (word == "v4")
        vector = 4;
      else if (const auto type = type_named(word))
        parameter.type = *type;
      else if (word != "ptr" && space_named(word) == Space::none)
        lex_.fail("unknown parameter attribute ." + word);
      else if (word == "ptr" && lex_.peek() == '.') {
        // .ptr{.space}{.align N}: the alignment is the pointee's
        while (lex_.peek() == '.') {
          const std::string attribute(lex_.directive());
          if (attribute == "align") lex_.integer();
        }
      }
    }
    if (parameter.type == Type::none) lex_.fail("parameter without a type");
    parameter.name = std::string(lex_.name());
    parameter.bytes = bytes_of(parameter.type) * vector;
    parameter.align = std::max<int32_t>(parameter.align, bytes_of(parameter.type));
    while (lex_.accept('[')) {
      parameter.bytes *= lex_.integer();
      lex_.expect(']');
    }
    offset = align_up(offset, parameter.align);
    parameter.offset = offset;
    offset += parameter.bytes;
    list.push_back(std::move(parameter));
    if (lex_.peek() != ')') lex_.expect(',');
  }
}

/// After the space: {.align N} {.attribute(..)} {.v2|.v4} .type name {[N]}* {= initialiser}; the ';' is left.
Variable Parser::variable(Space space, bool external) {
  Variable made;
  made.space = space;
  made.external = external;
  int64_t vector = 1;
  while (lex_.peek() == '.') {
    const std::string word(lex_.directive());
    if (word == "align")
      made.align = static_cast<int32_t>(lex_.integer());
    else if (word == "v2")
      vector = 2;
    else if (word == "v4")
      vector = 4;
    else if (word == "attribute") {
      lex_.expect('(');
      while (!lex_.accept(')')) {
        if (lex_.directive().empty() && lex_.name().empty() && !lex_.accept(','))
          lex_.fail("malformed attribute");
      }
    } else if (const auto type = type_named(word))
      made.type = *type;
    else
      lex_.fail("unknown variable attribute ." + word);
  }
  if (made.type == Type::none) lex_.fail("variable without a type");
  made.name = std::string(lex_.name());
  if (made.name.empty()) lex_.fail("expected a variable name");
  made.count = vector;
  bool open = false;
  while (lex_.accept('[')) {
    if (lex_.accept(']')) {
      open = true;
      continue;
    }
    made.count *= lex_.integer();
    lex_.expect(']');
  }
  if (open) made.count = 0;
  made.align = std::max<int32_t>(made.align, static_cast<int32_t>(bytes_of(made.type)));
  made.bytes = made.count * bytes_of(made.type);
  if (lex_.accept('=')) initialiser(made);
  return made;
}

void Parser::initialiser(Variable& made) {
  const int size = bytes_of(made.type);
  auto value = [&] {
    if (!lex_.number_next()) return address_initialiser(made);
    Literal literal = lex_.literal();
    if (literal.is_float && literal.float_bytes == 8 && size == 4) {
      double wide;
      std::memcpy(&wide, &literal.bits, 8);
      const float narrow = static_cast<float>(wide);
      uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      literal.bits = bits;
    }
    for (int i = 0; i < size; ++i) made.initial.push_back(static_cast<uint8_t>(literal.bits >> (8 * i)));
  };
  auto nested = [&](auto&& self) -> void {
    while (!lex_.accept('}')) {
      if (lex_.accept('{'))
        self(self);
      else
        value();
      if (lex_.peek() != '}') lex_.expect(',');
    }
  };
  if (lex_.accept('{'))
    nested(nested);
  else
    value();
  if (made.count == 0) {
    made.bytes = static_cast<int64_t>(made.initial.size());
    made.count = made.bytes / size;
  }
  if (static_cast<int64_t>(made.initial.size()) > made.bytes)
    lex_.fail("initialiser of " + made.name + " is too long");
  made.initial.resize(static_cast<size_t>(made.bytes), 0);
}

/// name{+offset} or generic(name){+offset}: the address of a variable or function, resolved in finish().
void Parser::address_initialiser(Variable& made) {
  Variable::Address address;
  address.at = static_cast<int64_t>(made.initial.size());
  address.name = std::string(lex_.name());
  if (address.name == "generic" && lex_.accept('(')) {
    address.name = std::string(lex_.name());
    lex_.expect(')');
  }
  if (address.name.empty() || bytes_of(made.type) != 8)
    lex_.fail("initialiser of " + made.name + " is not a number (nor a 64-bit address)");
  if (lex_.accept('+')) address.offset = lex_.integer();
  made.addresses.push_back(std::move(address));
  made.initial.resize(made.initial.size() + 8, 0);
}

/// Once the whole module is known: file numbers become indices, and function-scope variables follow the
/// module's.
void Parser::finish() {
  for (Line& line : module_.lines) {
    const auto found = file_numbers_.find(line.file);
    line.file = found == file_numbers_.end() ? -1 : found->second;
  }
  for (Variable& variable : module_.variables)
    for (Variable::Address& address : variable.addresses) {
      if (const auto found = module_variables_.find(address.name); found != module_variables_.end())
        address.variable = found->second;
      else if (const auto function = function_index_.find(address.name); function != function_index_.end())
        address.function = static_cast<int32_t>(function->second);
      else
        lex_.fail("initialiser of " + variable.name + " names " + address.name +
                  ", which the module does not declare");
    }
  const auto module_count = static_cast<int32_t>(module_.variables.size());
  auto renumber = [&](auto&& self, Operand& operand) -> void {
    if (operand.symbol <= -2) operand.symbol = module_count + (-2 - operand.symbol);
    for (Operand& element : operand.elements) self(self, element);
  };
  for (Function& made : module_.functions)
    for (Instruction& instruction : made.body)
      for (Operand& operand : instruction.operands) renumber(renumber, operand);
}

}  // namespace assay::ptx
