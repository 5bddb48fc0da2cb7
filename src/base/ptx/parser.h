// Recursive-descent parser of PTX. Used through ptx::parse (program.h).
#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/ptx/lexer.h"
#include "src/base/ptx/program.h"

namespace assay::ptx {

class Parser {
 public:
  /// `apart`: a body that cannot be read refuses its function alone.
  Parser(std::string_view text, std::string path, bool apart);
  Module module();

 private:
  /// .reg .b32 %r<9>: registers %r0 to %r8, made when they are first named.
  struct RegisterRange {
    Type type = Type::none;
    int64_t count = 0;
  };
  struct Scope {
    int parent = -1, depth = 0;
    std::unordered_map<std::string, RegisterRange> register_ranges;
    std::unordered_map<std::string, int32_t> registers, variables, labels;
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
  bool find_register(Scope& scope, const std::string& name, Operand& result);
  int32_t make_register(Scope& scope, std::string name, Type type);
  void loc_directive();
  void branch_targets(const std::string& name);
  void instruction();
  Form form(const Instruction&);
  Operand operand();
  Operand simple_operand();
  Operand address();
  Operand named();
  Operand special(const std::string& name, size_t position);
  Operand list(char close);
  bool resolve_name(const std::string& name, Operand& result);
  void resolve_labels();
  void resolve_label(Operand& operand, const LabelUse& use);
  int32_t target_of(const std::string& name, const LabelUse& use);
  void note_labels(const Operand& operand, std::vector<size_t>& path, size_t position);
  int32_t commented_site(std::string_view rest_of_line);
  int32_t line_index(int32_t file, int32_t line, int32_t column, int32_t inlined_at);

  Lexer lex_;
  const bool apart_;
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int scope_ = -1;
  std::vector<LabelUse> label_uses_;
  std::unordered_map<std::string, int32_t> module_variables_;
  std::unordered_map<std::string, size_t> function_index_;
  std::unordered_map<std::string, Form> forms_;          ///< by opcode
  std::unordered_map<int64_t, int32_t> file_numbers_;    ///< PTX .file number -> index
  std::unordered_map<std::string, int32_t> parameters_;  ///< of the current function: inputs, then returns
  std::unordered_map<std::string, int32_t> commented_sites_;      ///< text of a call site -> Module::lines
  std::vector<std::pair<int32_t, std::string>> commented_files_;  ///< line, its file's last name
  std::map<std::array<int32_t, 3>, int32_t> line_numbers_;  ///< file, line, column -> last of Module::lines
  std::vector<size_t> address_positions_;  ///< of address initialisers, in the order of the text
  int operand_depth_ = 0;
  int32_t current_line_ = -1;
};

}  // namespace assay::ptx
