// What the rows of tensor-core instructions share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/instruction_row.h"
#include "src/base/vm/matrix_form.h"

namespace assay::vm {

/// Tensor-core instructions are .aligned: every lane of the warp must execute them together.
bool whole_warp(Warp&, const Op&, uint32_t mask);
/// Appends the slots of a fragment {r0, r1, ...} of `count` registers.
void append_fragment(Decoder&, const ptx::Instruction&, const ptx::Operand& fragment, int count,
                     ptx::Type type, bool destination, std::vector<Slot>& slots);
/// Which lanes give a sparse A's metadata: a constant below selectors_of(form).
uint8_t selector_of(Decoder&, const ptx::Instruction&, const ptx::Operand& selector, const MatrixForm&);
/// D = A B + C of fragments in registers, Op::slots in the order D, A, B, C, as MatrixForm of Op::immediate
/// says.
WarpFunction multiply_fragments_function();

}  // namespace assay::vm
