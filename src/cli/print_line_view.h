// What a warp's lanes held at a source line, for people.
#pragma once
#include "reports/console.h"
#include "src/base/vm/line_view.h"
#include "src/cli/output_options.h"

namespace assay::cli {

void print_line_view(const Console&, const vm::LineView&);

/// Prints it and writes it where asked; the exit status. Throws BadInput for a visit that there was not.
int show_line_view(const OutputOptions&, vm::LineView&);

}  // namespace assay::cli
