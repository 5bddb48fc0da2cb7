#include "kernels/claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/views/gather_plan.h"
#include "src/base/numerics/bad_input.h"

namespace assay {

Claim claim_of(const Kernel& kernel, const ResolvedCase& c) {
  Claim claim{.of = &c, .exponents_nonpositive = kernel.exponents_nonpositive};
  if (c.forward()) claim.arithmetic = kernel.arithmetic(c);
  if (c.backward()) claim.adjoint = kernel.adjoint_arithmetic(c);
  return claim;
}

Program program_of(const Kernel& kernel, const ResolvedCase& c, const TensorMap& inputs) {
  Program program = program_with_views(kernel, c, inputs);
  program.blocks = c.case_.blocks;
  for (const ProgramOutput& output : program.outputs) {
    const auto named = [&](const SizedArgument& argument) { return argument.spec.name == output.name; };
    if (std::none_of(c.outputs.begin(), c.outputs.end(), named))
      throw BadInput(fmt::format("{}: its plan writes '{}', which {} {} does not have", kernel.name,
                                 output.name, c.op->name, name_of(c.direction)));
  }
  return program;
}

}  // namespace assay
