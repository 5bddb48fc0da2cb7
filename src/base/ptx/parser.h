// Recursive-descent parser of PTX. Used through ptx::parse (program.h).
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/ptx/lexer.h"
#include "src/base/ptx/parse_entry.h"
#include "src/base/ptx/program.h"

namespace assay::ptx {

class Parser {
 public:
  /// `apart`: a body that cannot be read refuses its function alone. `only`: the bodies of other entries are
  /// passed over; empty: none is.
  Parser(std::string_view text, std::string path, bool apart, std::string_view only = {},
         PassedBodies* passed = nullptr);
  Module module();

 private:
  /// Names are looked up as they stand in the text.
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  template <class T>
  using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;
  /// .reg .b32 %r<9>: registers %r0 to %r8, made when they are first named.
  struct RegisterRange {
    std::string_view name;  ///< "%r"
    Type type = Type::none;
    int64_t count = 0;
    std::vector<int32_t> made;  ///< by number, as far as any is: its register, or -1
  };
  struct Scope {
    int parent = -1, depth = 0;
    std::vector<RegisterRange> register_ranges;
    bool digits_are_numbers = true;  ///< no range's name ends in one
    ByName<int32_t> registers;       ///< declared by their own names
    ByName<int32_t> variables, labels;
    std::unordered_map<std::string, std::vector<std::string>> branch_tables;
    std::unordered_set<std::string> prototypes;  ///< .callprototype and .calltargets
  };
  struct LabelUse {
    size_t instruction;
    std::vector<size_t> path;  ///< operand index, then element indices
    int scope;
    size_t position;  ///< in the text, for messages
  };

  // parser_module.cpp
  void module_statement();
  void file_directive();
  void function(bool entry);
  void pass_over();
  void parameter_list(std::vector<Parameter>& list);
  void function_attributes();
  Variable variable(Space space, bool external);
  void initialiser(Variable& variable);
  void address_initialiser(Variable& variable);
  void declare(Variable made, size_t position);
  int32_t alignment();
  void finish();

  // parser_body.cpp
  void body();
  void body_apart();
  void statement();
  void open_scope(size_t position);
  void registers();
  bool find_register(Scope& scope, std::string_view name, Operand& result);
  int32_t make_register(std::string_view name, Type type);
  void loc_directive();
  void branch_targets(const std::string& name);
  void instruction();
  Form form(const Instruction&);
  bool plain_register();
  Operand operand();
  Operand simple_operand();
  Operand with_part(Operand);
  Operand address();
  Operand named();
  Operand special(std::string_view name, size_t position);
  Operand list(char close);
  bool resolve_name(std::string_view name, Operand& result);
  void resolve_labels();
  void resolve_label(Operand& operand, const LabelUse& use);
  int32_t target_of(const std::string& name, const LabelUse& use);
  void note_labels(const Operand& operand, std::vector<size_t>& path, size_t position);
  int32_t commented_site(std::string_view rest_of_line);
  int32_t line_index(int32_t file, int32_t line, int32_t column, int32_t inlined_at);

  Lexer lex_;
  const bool apart_;
  const std::string_view only_;
  PassedBodies* const passed_;
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int scope_ = -1;
  std::vector<LabelUse> label_uses_;
  ByName<int32_t> module_variables_;
  std::unordered_map<std::string, size_t> function_index_;
  std::unordered_map<std::string, Form> forms_;        ///< by opcode
  std::unordered_map<int64_t, int32_t> file_numbers_;  ///< PTX .file number -> index
  ByName<int32_t> parameters_;                         ///< of the current function: inputs, then returns
  std::unordered_map<std::string, int32_t> commented_sites_;      ///< text of a call site -> Module::lines
  std::vector<std::pair<int32_t, std::string>> commented_files_;  ///< line, its file's last name
  struct PlaceHash {
    size_t operator()(const std::array<int32_t, 3>& place) const {
      uint64_t hash = 0;
      for (const int32_t number : place)
        hash = (hash ^ static_cast<uint32_t>(number)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
      return hash;
    }
  };
  /// File, line, column -> last of Module::lines.
  std::unordered_map<std::array<int32_t, 3>, int32_t, PlaceHash> line_numbers_;
  std::vector<Operand> operands_;          ///< of the instruction that is being read
  std::vector<size_t> address_positions_;  ///< of address initialisers, in the order of the text
  int operand_depth_ = 0;
  int32_t current_line_ = -1;
};

}  // namespace assay::ptx
