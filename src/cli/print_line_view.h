// What a warp's lanes held at a source line, for people.
#pragma once
#include "reports/console.h"
#include "src/base/vm/line_view.h"

namespace assay::cli {

void print_line_view(const Console&, const vm::LineView&);

}  // namespace assay::cli
