// Module scope: directives, variables, functions and their parameters.
#include <algorithm>
#include <cstring>

#include "src/base/ptx/parse_entry.h"
#include "src/base/ptx/parser.h"
#include "src/base/ptx/printable.h"
#include "src/base/ptx/type.h"

namespace assay::ptx {
namespace {

// Bounds beyond what any GPU takes, so that sizes cannot overflow and a wrong text cannot ask for all memory.
constexpr int64_t largest_variable = int64_t{1} << 31;  // bytes
constexpr int64_t largest_parameters = 32764;  // bytes of an entry (PTX ISA 4.4, "Parameter State Space")
constexpr int64_t largest_alignment = 1 << 16;
constexpr int deepest_initialiser = 64;

/// By memmem: a text has megabytes, and of the standard library's searches the fastest takes twice as long.
bool has_functions(std::string_view text) {
  constexpr std::string_view kFunction = ".func";
  return memmem(text.data(), text.size(), kFunction.data(), kFunction.size()) != nullptr;
}

int64_t align_up(int64_t value, int64_t align) {
  return align > 1 ? (value + align - 1) / align * align : value;
}

Space space_named(std::string_view word) {
  if (word == "shared" || word.starts_with("shared::")) return Space::shared;
  if (word == "global") return Space::global;
  if (word == "const") return Space::constant;
  if (word == "local") return Space::local;
  if (word == "param") return Space::param;
  return Space::none;
}

/// Of textures, samplers and surfaces: 64-bit handles, which only instructions that are refused take.
bool is_reference(std::string_view word) {
  return word == "texref" || word == "samplerref" || word == "surfref";
}

bool is_source(std::string_view path) {
  return path.ends_with(".cu") || path.ends_with(".cuh") || path.ends_with(".cpp") || path.ends_with(".h");
}

}  // namespace

bool PassedBodies::declares_functions(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!declares_functions_) declares_functions_ = has_functions(text);
  return *declares_functions_;
}

Parser::Parser(std::string_view text, std::string path, bool apart, std::string_view only,
               PassedBodies* passed)
    : lex_(text, path), apart_(apart), only_(only), passed_(passed) {
  module_.path = std::move(path);
}

Module parse(std::string_view text, std::string path) {
  return Parser(text, std::move(path), false).module();
}

Module parse_functions(std::string_view text, std::string path) {
  return Parser(text, std::move(path), true).module();
}

Module parse_entry(std::string_view text, std::string path, std::string_view entry, PassedBodies* passed) {
  // Any body may take the address of a function that the entry calls.
  const bool whole = passed ? passed->declares_functions(text) : has_functions(text);
  return Parser(text, std::move(path), true, whole ? std::string_view{} : entry, passed).module();
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
    const size_t start = lex_.next_position();
    const std::string word(lex_.directive());
    if (word.empty())
      lex_.fail_at(start, is_source(module_.path)
                              ? "expected a directive of PTX, which nvcc -ptx makes of CUDA sources"
                              : "expected a directive");
    if (word == "visible" || word == "weak" || word == "common") continue;
    if (word == "extern") {
      external = true;
      continue;
    }
    if (word == "version") {
      const size_t at = lex_.next_position();
      module_.version = std::string(lex_.opcode());
      if (module_.version.empty() || module_.version.find_first_not_of("0123456789.") != std::string::npos)
        lex_.fail_at(at, "expected a version such as 8.0");
    } else if (word == "target") {
      do {
        const std::string_view name = lex_.name();
        if (name.empty()) lex_.fail("expected a target such as sm_80");
        if (!module_.target.empty()) module_.target += ",";
        module_.target += name;
      } while (lex_.accept(','));
    } else if (word == "address_size") {
      const size_t at = lex_.next_position();
      if (lex_.integer() != 64) lex_.fail_at(at, "only .address_size 64 is supported");
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
        const size_t at = lex_.next_position();
        declare(variable(space, external), at);
      } while (lex_.accept(','));
      lex_.expect(';');
    } else {
      lex_.fail_at(start, "unknown directive ." + word);
    }
    return;
  }
}

/// A name may be declared again where one of the declarations is external.
void Parser::declare(Variable made, size_t position) {
  const auto index = static_cast<int32_t>(module_.variables.size());
  const auto [known, is_new] = module_variables_.try_emplace(made.name, index);
  if (!is_new) {
    const bool external = made.external || module_.variables[static_cast<size_t>(known->second)].external;
    if (!external) lex_.fail_at(position, "variable " + made.name + " is declared twice");
    known->second = index;
  }
  module_.variables.push_back(std::move(made));
}

void Parser::file_directive() {
  const int64_t number = lex_.integer();
  std::string name = printable(lex_.quoted());
  while (lex_.accept(',')) lex_.integer();  // time stamp, size
  file_numbers_[number] = static_cast<int32_t>(module_.files.size());
  module_.files.push_back(std::move(name));
}

void Parser::function(bool entry) {
  Function made;
  made.entry = entry;
  if (lex_.peek() == '(') parameter_list(made.returns);
  const size_t at = lex_.next_position();
  made.name = std::string(lex_.name());
  if (made.name.empty()) lex_.fail("expected a function name");
  if (lex_.peek() == '(') parameter_list(made.parameters);
  const int64_t bytes =
      made.parameters.empty() ? 0 : made.parameters.back().offset + made.parameters.back().bytes;
  if (entry && bytes > largest_parameters)
    lex_.fail_at(at, "entry " + made.name + " has " + std::to_string(bytes) +
                         " bytes of parameters; at most " + std::to_string(largest_parameters) +
                         " are possible");

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
  if (function_->defined) lex_.fail_at(at, "function " + function_->name + " is defined twice");
  lex_.expect('{');
  function_->defined = true;
  parameters_.clear();
  for (const auto* list : {&function_->parameters, &function_->returns})
    for (const Parameter& parameter : *list)
      if (!parameter.name.empty() &&
          !parameters_.try_emplace(parameter.name, static_cast<int32_t>(parameters_.size())).second)
        lex_.fail_at(at, "parameter " + parameter.name + " is declared twice");
  if (entry && !only_.empty() && function_->name != only_) return pass_over();
  apart_ ? body_apart() : body();
}

/// To behind the brace that closes the body.
void Parser::pass_over() {
  const size_t begin = lex_.position();
  if (const auto behind = passed_ ? passed_->behind(begin) : std::nullopt) return lex_.go_to(*behind);
  lex_.skip_braces();
  if (passed_) passed_->note(begin, lex_.place());
}

/// .maxntid, .reqntid, .minnctapersm, .maxnreg, .noreturn, .pragma ... between the parameters and the body.
void Parser::function_attributes() {
  struct Attribute {
    std::string_view name;
    bool takes_numbers;
  };
  static constexpr Attribute attributes[] = {
      {"maxntid", true},        {"reqntid", true},          {"minnctapersm", true},
      {"maxnctapersm", true},   {"maxnreg", true},          {"reqnctapercluster", true},
      {"maxclusterrank", true}, {"explicitcluster", false}, {"blocksareclusters", false},
      {"noreturn", false},      {"abi_preserve", true},     {"abi_preserve_control", true}};
  while (lex_.peek() == '.') {
    const size_t start = lex_.position();
    const std::string word(lex_.directive());
    if (word == "pragma") {
      lex_.skip_statement();
      continue;
    }
    std::vector<int64_t> numbers;
    while (lex_.number_next()) {
      numbers.push_back(lex_.integer("a number of ." + word, 0, INT32_MAX));
      if (!lex_.accept(',')) break;
    }
    const auto known = std::find_if(std::begin(attributes), std::end(attributes),
                                    [&](const Attribute& attribute) { return attribute.name == word; });
    if (known == std::end(attributes)) lex_.fail_at(start, "unknown directive ." + word);
    if (numbers.empty() == known->takes_numbers)
      lex_.fail(known->takes_numbers ? "expected a number" : "unexpected number");
    const bool extent = word == "maxntid" || word == "reqntid" || word == "reqnctapercluster";
    if (!extent) continue;
    if (numbers.size() > 3) lex_.fail_at(start, "." + word + " has at most 3 dimensions");
    numbers.resize(3, 1);
    for (const int64_t number : numbers)
      if (number < 1 || number > 1024) lex_.fail_at(start, "." + word + " is out of range");
    if (word == "maxntid")
      function_->max_threads = static_cast<int32_t>(numbers[0] * numbers[1] * numbers[2]);
    else
      std::copy(numbers.begin(), numbers.end(),
                (word == "reqntid" ? function_->required_block : function_->required_cluster).begin());
  }
}

void Parser::parameter_list(std::vector<Parameter>& list) {
  lex_.expect('(');
  int64_t offset = 0;
  while (!lex_.accept(')')) {
    Parameter parameter;
    int64_t vector = 1;
    const size_t start = lex_.next_position();
    if (lex_.directive() != "param")
      lex_.fail_at(start, "expected .param (parameters in registers are not supported)");
    while (lex_.peek() == '.') {
      const size_t at = lex_.position();
      const std::string word(lex_.directive());
      if (word == "align")
        parameter.align = alignment();
      else if (word == "v2")
        vector = 2;
      else if (word == "v4")
        vector = 4;
      else if (const auto type = type_named(word))
        parameter.type = *type;
      else if (is_reference(word))
        parameter.type = Type::b64;
      else if (word != "ptr" && space_named(word) == Space::none)
        lex_.fail_at(at, "unknown parameter attribute ." + word);
      else if (word == "ptr" && lex_.peek() == '.') {
        // .ptr{.space}{.align N}: the alignment is the pointee's
        while (lex_.peek() == '.') {
          const std::string attribute(lex_.directive());
          if (attribute == "align") alignment();
          if (attribute.empty()) lex_.fail("expected a directive");
        }
      }
    }
    if (bytes_of(parameter.type) == 0) lex_.fail_at(start, "parameter without a type that has a size");
    parameter.name = std::string(lex_.name());
    parameter.bytes = bytes_of(parameter.type) * vector;
    parameter.align = std::max<int32_t>(parameter.align, bytes_of(parameter.type));
    while (lex_.accept('[')) {
      if (lex_.accept(']')) {  // a declaration's array of unknown size
        parameter.bytes = 0;
        continue;
      }
      parameter.bytes *= lex_.integer("the size of the parameter", 0, largest_variable);
      if (parameter.bytes > largest_variable)
        lex_.fail_at(start, "parameter " + parameter.name + " is too large");
      lex_.expect(']');
    }
    offset = align_up(offset, parameter.align);
    parameter.offset = offset;
    offset += parameter.bytes;
    if (offset > largest_variable) lex_.fail_at(start, "the parameters are too large");
    list.push_back(std::move(parameter));
    if (lex_.peek() != ')') lex_.expect(',');
  }
}

int32_t Parser::alignment() {
  const size_t at = lex_.next_position();
  const int64_t value = lex_.integer("the alignment", 1, largest_alignment);
  if (value & (value - 1)) lex_.fail_at(at, "the alignment is no power of two");
  return static_cast<int32_t>(value);
}

/// After the space: {.align N} {.attribute(..)} {.v2|.v4} .type name {[N]}* {= initialiser}; the ';' is left.
Variable Parser::variable(Space space, bool external) {
  Variable made;
  made.space = space;
  made.external = external;
  int64_t vector = 1;
  bool reference = false;
  const size_t start = lex_.next_position();
  while (lex_.peek() == '.') {
    const size_t at = lex_.position();
    const std::string word(lex_.directive());
    if (word == "align")
      made.align = alignment();
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
    else if (is_reference(word))
      made.type = Type::b64, reference = true;
    else
      lex_.fail_at(at, "unknown variable attribute ." + word);
  }
  if (bytes_of(made.type) == 0) lex_.fail_at(start, "variable without a type that has a size");
  made.name = std::string(lex_.name());
  if (made.name.empty()) lex_.fail("expected a variable name");
  made.count = vector;
  bool open = false;
  while (lex_.accept('[')) {
    if (lex_.accept(']')) {
      open = true;
      continue;
    }
    made.count *= lex_.integer("the size of the array", 0, largest_variable);
    if (made.count > largest_variable / bytes_of(made.type))
      lex_.fail_at(start, "variable " + made.name + " has more than 2^31 bytes");
    lex_.expect(']');
  }
  if (open) made.count = 0;
  made.align = std::max<int32_t>(made.align, static_cast<int32_t>(bytes_of(made.type)));
  made.bytes = made.count * bytes_of(made.type);
  if (lex_.peek() == '=') {
    if (space != Space::global && space != Space::constant)
      lex_.fail("only .global and .const variables may have an initialiser");
    lex_.accept('=');
    if (reference && lex_.accept('{'))
      lex_.skip_braces();
    else
      initialiser(made);
  }
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
  const size_t start = lex_.next_position();
  auto nested = [&](auto&& self, int depth) -> void {
    if (depth > deepest_initialiser) lex_.fail("the initialiser is nested too deep");
    while (!lex_.accept('}')) {
      if (lex_.accept('{'))
        self(self, depth + 1);
      else
        value();
      if (lex_.peek() != '}') lex_.expect(',');
    }
  };
  if (lex_.accept('{'))
    nested(nested, 1);
  else
    value();
  if (made.count == 0) {
    made.bytes = static_cast<int64_t>(made.initial.size());
    made.count = made.bytes / size;
  }
  if (static_cast<int64_t>(made.initial.size()) > made.bytes)
    lex_.fail_at(start, "initialiser of " + made.name + " is too long");
  made.initial.resize(static_cast<size_t>(made.bytes), 0);
}

/// name{+offset} or generic(name){+offset}: the address of a variable or function, resolved in finish().
void Parser::address_initialiser(Variable& made) {
  Variable::Address address;
  address.at = static_cast<int64_t>(made.initial.size());
  const size_t start = lex_.next_position();
  address.name = std::string(lex_.name());
  if (address.name == "generic" && lex_.accept('(')) {
    address.name = std::string(lex_.name());
    lex_.expect(')');
  }
  if (address.name.empty() || bytes_of(made.type) != 8)
    lex_.fail_at(start, "initialiser of " + made.name + " is not a number (nor a 64-bit address)");
  address_positions_.push_back(start);
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
  size_t at = 0;
  for (const auto& [index, raw] : commented_files_) {
    const std::string name = printable(raw);
    int32_t& file = module_.lines[static_cast<size_t>(index)].file = -1;
    for (size_t i = 0; i < module_.files.size() && file < 0; ++i)
      if (module_.files[i] == name || module_.files[i].ends_with("/" + name)) file = static_cast<int32_t>(i);
  }
  for (Variable& variable : module_.variables)
    for (Variable::Address& address : variable.addresses) {
      const size_t position = address_positions_[at++];
      if (const auto found = module_variables_.find(address.name); found != module_variables_.end())
        address.variable = found->second;
      else if (const auto function = function_index_.find(address.name); function != function_index_.end())
        address.function = static_cast<int32_t>(function->second);
      else
        lex_.fail_at(position, "initialiser of " + variable.name + " names " + address.name +
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
