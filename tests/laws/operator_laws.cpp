#include "tests/laws/operator_laws.h"

namespace assay {

#define ASSAY_OPERATOR(Type, file) OperatorLaws laws_of_##file();
#include "reference/operators.def"
#undef ASSAY_OPERATOR

std::vector<OperatorLaws> operator_laws() {
#define ASSAY_OPERATOR(Type, file) laws_of_##file(),
  return {
#include "reference/operators.def"
  };
#undef ASSAY_OPERATOR
}

}  // namespace assay
