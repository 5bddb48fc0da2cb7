// run_shadow: the program on the machine, with every float's exact counterpart beside it (error_trace.h).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "src/base/vm/machine.h"
#include "src/base/vm/shadow_report.h"

namespace assay::vm {

struct ShadowOptions {
  double parting = 0x1p-6;  ///< ShadowParting::threshold
  bool by_line = true;      ///< attribute errors to lines: one further run per 16 lines that round
  /// Bytes that following lines may take; above, lines stay empty. Counted: 80 for each 16-bit half of the
  /// program's outputs and workspaces.
  uint64_t by_line_bytes = uint64_t{2} << 30;
  /// An element that ShadowReport::element tells of: (output, flat).
  std::optional<std::pair<std::string, int64_t>> element;
  /// Source line of an instruction; null: where its own text stands (src/base/vm/warp.h).
  std::function<SourceLocation(const ptx::Module&, int32_t function, int32_t instruction)> locate;
};

/// Results do not depend on the number of threads. A run that traps reports what it had reached: outputs then
/// stay empty. Throws BadInput as run() does.
ShadowReport run_shadow(const Program&, const TensorMap& inputs, const MachineOptions&,
                        const ShadowOptions& = {});

}  // namespace assay::vm
