// A rehearsal as PTX: the part once more, with its sums, and where they are tested.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/watch/added_registers.h"
#include "src/base/watch/function_text.h"
#include "src/base/watch/rehearsal_tests.h"

namespace assay::watch {

class RehearsalText {
 public:
  /// `number`: the function's. All outlive this.
  RehearsalText(const FunctionText& text, const FunctionView& view, const Rehearsal& part,
                const std::vector<RehearsalTest>& tests, int32_t number, bool marks_cold)
      : text_(text), view_(view), part_(part), tests_(tests), number_(number), marks_cold_(marks_cold) {}

  std::string declarations() const;
  /// Where the function begins: goes to the rehearsal, behind which the watched part stands.
  void begin(Code&) const;
  /// Behind the function's own text.
  Code rehearsal() const;
  /// Where the run goes on in the function: before the instruction, or behind it where that is a gate.
  std::string label_of(int32_t instruction) const;

 private:
  std::string label(const char* what, int32_t instruction = -1) const;
  void test(const RehearsalTest&, Code&) const;
  std::string found(Code&) const;
  void gate(int32_t instruction, Code&) const;
  void leave(int32_t instruction, Code&) const;
  void scopes_before(int32_t number, Code&) const;
  void instruction(int32_t number, Code&) const;
  void mark(int times, Code&) const;

  const FunctionText& text_;
  const FunctionView& view_;
  const Rehearsal& part_;
  const std::vector<RehearsalTest>& tests_;
  const int32_t number_;
  const bool marks_cold_;
};

}  // namespace assay::watch
