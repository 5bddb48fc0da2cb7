// Of lines that can explain what is lacking those of which it is another value that their threads hold.
#pragma once
#include <functional>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/verification/diagnosis/slice_lines.h"

namespace assay {

struct RanProgram {
  const Program& program;
  const TensorMap& inputs;
  const vm::MachineOptions& machine;
};

/// Sets ExplainedLine::related and superfluous. Looks among what the outputs are made of, and where that is
/// none among all that the lines' threads make around them: what is exchanged with another statement, or left
/// out, has no part in any output. Where that is none either what the makers of operands take, and what else
/// is made of these; true: such was found. Ends where `late` says so.
bool relate(SliceLines&, const WrongElements&, const SourceText&, const RanProgram&,
            const std::function<bool()>& late);

/// Of a line that is right with all its values times a number: the nearest product that is one too many.
void note_superfluous(const vm::ValueSlice&, ExplainedLine&);

}  // namespace assay
