#include "mutate/equivalence.h"

namespace assay {

std::string why_equivalent(const ptx::Module&, const ptx::Mutation&, const std::string&) {
  return {};
}

}  // namespace assay
