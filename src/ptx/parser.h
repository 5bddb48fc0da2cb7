// Recursive-descent parser of PTX. Used through ptx::parse (program.h).
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/ptx/lexer.h"
#include "src/ptx/program.h"

namespace assay::ptx {

class Parser {
 public:
  Parser(std::string_view text, std::string path);
  Module module();

 private:
  struct Scope {
    int parent = -1;
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
  void finish();

  // parser_body.cpp
  void body();
  void statement();
  void registers();
  void loc_directive();
  void branch_targets(const std::string& name);
  void instruction();
  Operand operand();
  Operand simple_operand();
  Operand address();
  Operand named(const std::string& name);
  Operand list(char close);
  bool resolve_name(const std::string& name, Operand& result) const;
  void resolve_labels();
  void resolve_label(Operand& operand, const LabelUse& use);
  void note_labels(const Operand& operand, std::vector<size_t>& path, size_t position);
  int32_t line_index(int32_t file, int32_t line, int32_t column, int32_t inlined_at);

  Lexer lex_;
  Module module_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  int scope_ = -1;
  std::vector<LabelUse> label_uses_;
  std::unordered_map<std::string, int32_t> module_variables_;
  std::unordered_map<std::string, size_t> function_index_;
  std::unordered_map<int64_t, int32_t> file_numbers_;  ///< PTX .file number -> index
  int32_t current_line_ = -1;
};

}  // namespace assay::ptx
