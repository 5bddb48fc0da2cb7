// A PTX module as parsed: plain data, names resolved, every instruction tied to its lines. What an
// instruction means stands in the machine's instruction table (src/base/vm/), by opcode and modifiers.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/ptx/form.h"
#include "src/base/ptx/type.h"

namespace assay::ptx {

struct Register {
  std::string name;  ///< "%r12"
  Type type = Type::none;
};

/// One operand. Vectors {a,b,c,d} are Kind::vector with `elements`, so are the lists of a call; p|q is
/// Kind::pair with two. The target list of brx.idx is a vector of labels.
struct Operand {
  enum class Kind : uint8_t {
    reg,
    immediate,
    address,
    vector,
    label,
    symbol,
    special,
    sink,
    pair
  } kind = Kind::reg;
  bool negated = false;  ///< "!%p1"
  bool is_float_literal = false;
  uint8_t literal_bytes = 0;  ///< float literals: 4 (0f...), 8 (0d... and decimal); integers 0
  int32_t reg = -1;   ///< index into Function::registers (reg; base register of an address, -1 if none)
  uint64_t bits = 0;  ///< immediate, as 64-bit pattern (integers sign-extended; 0f/0d literals as their bits)
  int64_t offset = 0;      ///< address offset
  int32_t symbol = -1;     ///< variable index (address or symbol operand): Function/Module::variables
  int32_t parameter = -1;  ///< address or symbol of a parameter: Function::parameters, then Function::returns
  int32_t target = -1;     ///< label: instruction index; -1: the prototype of an indirect call
  std::string name;        ///< special register ("%tid.x"), label, function or parameter name
  std::vector<Operand> elements;
};

struct Line {
  int32_t file = -1;  ///< index into Module::files
  int32_t line = 0, column = 0;
  int32_t inlined_at = -1;  ///< index into Module::lines of the call site, or -1
};

struct Instruction {
  std::string opcode;      ///< whole dotted form: "fma.rn.f32", for messages
  Form form;               ///< the same, taken apart
  int32_t predicate = -1;  ///< guarding register or -1
  bool predicate_negated = false;
  std::vector<Operand> operands;  ///< in PTX order, destination first
  int32_t ptx_line = 0, ptx_column = 0;
  int32_t line = -1;  ///< index into Module::lines
};

struct Variable {  ///< module- or function-scope .shared/.global/.const/.local/.param
  std::string name;
  Space space = Space::none;
  Type type = Type::none;
  int64_t count = 1;  ///< elements; 0: extern (dynamic) shared
  int32_t align = 0;
  int64_t bytes = 0;
  bool external = false;
  std::vector<uint8_t> initial;  ///< empty, or `bytes` bytes
  struct Address {
    int64_t at = 0;                        ///< byte of `initial` where the 8-byte address stands
    int32_t variable = -1, function = -1;  ///< into Module::variables or Module::functions
    int64_t offset = 0;                    ///< added to it
    std::string name;
  };
  std::vector<Address> addresses;  ///< initialisers that name variables or functions
};

struct Parameter {
  std::string name;
  Type type = Type::none;
  int64_t bytes = 0;
  int32_t align = 0;
  int64_t offset = 0;  ///< in the parameter block
};

struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;  ///< false: declaration only
  std::string refused;   ///< of a body that cannot be read: "path:line:column: what"; then there is none
  std::vector<Parameter> parameters, returns;
  std::vector<Register> registers;  ///< of all scopes; names may repeat
  std::vector<Variable>
      variables;  ///< function scope; operand symbols >= module count index these (symbol - module count)
  std::vector<Instruction> body;
  std::vector<std::pair<std::string, int32_t>> labels;
  int32_t max_threads = 0;                    ///< of a block, by .maxntid; 0: any number
  std::array<int32_t, 3> required_block{};    ///< by .reqntid; zeros: any
  std::array<int32_t, 3> required_cluster{};  ///< in blocks, by .reqnctapercluster; zeros: any
};

struct Module {
  std::string path;  ///< for messages
  std::string version, target;
  std::vector<std::string> files;  ///< .file table, by our own index
  std::vector<Line> lines;
  std::vector<Variable> variables;  ///< module scope
  std::vector<Function> functions;
};

/// Parses PTX text of ISA 6 and later. Throws BadInput("path:line:column: what").
Module parse(std::string_view text, std::string path);
/// The same, but a body that cannot be read refuses what calls its function alone (Function::refused).
Module parse_functions(std::string_view text, std::string path);

}  // namespace assay::ptx
