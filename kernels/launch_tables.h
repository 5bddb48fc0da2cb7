// What the plans of the gated kernels share: which sequences and chunks there are, and how arguments are
// passed.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace assay::gated {

/// Packed sequences of one case, in the order of their states.
struct Sequences {
  Tensor table;        ///< "sequences" [N, 3]: first token, tokens, first chunk
  Tensor chunk_table;  ///< "chunks" [chunks, 2]: first token, tokens
  int64_t count = 0, chunks = 0;
};
Sequences sequences_of(const ResolvedCase&, int64_t chunk);

/// Checks the case against the limits: formats, K and V. Throws BadInput naming kernel, value and limit.
void require_within(const KernelLimits&, const ResolvedCase&, const std::string& kernel);

/// The input by name, or a null pointer where it is absent.
PointerArgument input_or_null(const TensorMap& inputs, const std::string& name);

/// What the case's direction writes: outputs, gradients, or both, each in the case's format for it.
std::vector<ProgramOutput> plan_outputs(const ResolvedCase&);
/// A pointer to the output of that name, or a null pointer where the plan writes none.
PointerArgument output_or_null(const Program&, const std::string& name);

/// Whether a plan has a module, workspace or output of that name.
template <class Row>
bool has(const std::vector<Row>& rows, const std::string& name) {
  return std::ranges::any_of(rows, [&](const Row& row) { return row.name == name; });
}
/// The plan's buffer of that name, `bytes` large; a null pointer for none. A name may be asked for twice.
PointerArgument workspace_of(Program&, const std::string& name, int64_t bytes);
/// The kernel's module, which the plan has from now on; its name.
std::string module_of(Program&, const std::string& name);

/// A one-dimensional grid of `blocks`; throws BadInput where the GPU has no such grid.
std::array<uint32_t, 3> grid_of(int64_t blocks, const std::string& kernel);
/// Appends a launch of such a grid of blocks of device::block_threads.
Launch& add_launch(Program&, const std::string& module, const std::string& function, int64_t blocks,
                   std::vector<Argument> arguments, uint32_t shared_bytes = 0);

}  // namespace assay::gated
