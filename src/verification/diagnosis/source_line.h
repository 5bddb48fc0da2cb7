// Source lines of PTX instructions.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/instruction_text.h"
#include "src/base/ptx/program.h"
#include "src/result/origin.h"
#include "src/result/verification.h"

namespace assay {

/// Function, PTX line and source line; of inlined code the innermost line that is not a mere wrapper's.
SourceLocation location_of(const ptx::Module&, int32_t function, int32_t instruction);
/// The same for many instructions of a module, which outlives it: its table of lines is read once.
class Locations {
 public:
  explicit Locations(const ptx::Module&);
  SourceLocation of(int32_t function, int32_t instruction) const;

 private:
  const ptx::Module& module_;
  std::vector<int32_t> telling_;  ///< by line of the table: its frame that a person would point at
};
/// Where the entry of the plan's last launch begins: the source line, or without one the PTX file's own line.
SourceLocation entry_of(const Program&);
/// Of a program's modules, parsed for it.
struct FoundInstruction {
  std::shared_ptr<const ptx::Module> module;
  int32_t function = 0, instruction = 0;
};
/// By its function and its line of PTX; none where no module has it.
std::optional<FoundInstruction> find_instruction(const Program&, const SourceLocation&);
struct SourceRange {
  std::string file;
  int first = 0, last = 0;
  bool holds(const SourceLocation& at) const {
    return at.file == file && at.line >= first && at.line <= last;
  }
};

/// Text of source lines: of a kernel of ours from the program itself, with the defect that its name carries
/// applied; else from the file below the root of the sources, or the longest tail of its path that exists
/// below the working directory.
class SourceText {
 public:
  explicit SourceText(const std::string& kernel);
  /// The line, trimmed; empty where there is none.
  std::string line(const SourceLocation&) const;
  /// The line's shape (src/result/identity.h), with its number among the lines of that shape in its file, but
  /// for the first: " #2"; empty where there is none.
  std::string shape(const SourceLocation&) const;
  /// The lines of the statement that a line belongs to, judged by what lines end with; the line alone where
  /// its text is not there.
  SourceRange statement_around(const SourceLocation&) const;

 private:
  std::string text_of(const std::string& file) const;

  std::vector<std::pair<std::string, std::string>> files_;  ///< path, text
};

/// Of the place that the cause names (SourceText::shape): Verification::source_shape.
std::string shape_of_cause(const Verification&);

ChainLink link_of(const ptx::Module&, int32_t function, int32_t instruction, const SourceText&);

/// True where source `operand` (position in the PTX) is a register that a predicate chose between two
/// literals, or that was converted from an integer: a mask.
bool made_by_selection(const ptx::Function&, int32_t instruction, size_t operand);

/// True where a product is the last step of an expanded exponential: 2^fraction from ex2 times a power of two
/// made by a shift into the exponent, as expf compiles to.
bool is_expanded_exponential(const ptx::Function&, int32_t instruction);

/// Where the sources of an instruction were computed: the definitions of its registers, `depth` steps back,
/// nearest first, one link per source line. From the text alone: a register with several definitions gives
/// the last before it.
std::vector<ChainLink> definitions_before(const ptx::Module&, int32_t function, int32_t instruction,
                                          int depth, const SourceText&);

}  // namespace assay
