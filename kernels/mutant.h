// Mutants: a kernel with one instruction of its PTX changed.
#pragma once
#include <string>
#include <string_view>

#include "kernels/kernel.h"
#include "src/base/mutation/mutation.h"

namespace assay {

/// A mutant's identity: "gla+chunk.bf16.fp32+1234+fma-to-mul" is mutation "1234+fma-to-mul"
/// (src/base/mutation/mutation.h) of module "gla/chunk.bf16.fp32"; bytes that no kernel name may have are +
/// in it.
std::string mutant_id(const std::string& module, const std::string& mutation);

/// The kernel "NAME%ID": the same plans, their module of that name changed where they have it. A module that
/// no plan of the kernel has is BadInput, and so is a mutation that the module does not have.
Kernel with_mutation(const Kernel&, const std::string& id);
/// A program that no kernel plans: its module of that name changed. Throws BadInput likewise.
Program with_mutation(Program, const std::string& id);
/// Throws BadInput where the kernel of that name is a mutant and the program launches nothing of its module:
/// then what is judged is the kernel as it is.
void require_launched(const std::string& kernel, const Program&);
/// The same as a kernel's from the changed text itself.
Kernel with_text(const Kernel&, const std::string& id, const std::string& module,
                 std::shared_ptr<const std::string> text);

}  // namespace assay
