// Source lines that may be what is wrong, and why.
#pragma once
#include <string>

#include "src/base/fields/fields.h"
#include "src/result/origin.h"

namespace assay {

struct SuspectLine {
  ChainLink at;
  std::string reason;  ///< "6 of its 120 values changed make all 24 wrong elements right"
};
template <typename Io>
void fields(Io& io, SuspectLine& x) {
  io.type("suspect_line", "a source line that may be what is wrong");
  ASSAY_FIELD(at);
  ASSAY_FIELD(reason, "what convinced");
}

}  // namespace assay
