// The checking machine: runs a program once more, block after block, with checks beside the machine's own
// traps. Findings are data; correct kernels give none.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/program/byte_set.h"
#include "src/base/program/program.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/machine.h"

namespace assay::vm {

/// Which checks run (checks.def).
struct Checks {
#define CHECK(type, member, name, summary) bool member = true;
#include "src/base/vm/checks/checks.def"
  /// A trap at the first read of what was never written, whether it matters or not.
  bool strict_reads = false;
  /// Bytes of inputs that hold nothing yet, by name: what comes of them is followed, and which are left is
  /// told (CheckReport::unwritten); a launch that leaves some is no finding, for a later one may write them.
  std::map<std::string, ByteSet> unwritten_bytes;
  static Checks none();
  bool any() const;
};

struct CheckRow {
  CheckName check;
  std::string_view name, summary;
  bool Checks::*member;
};
const std::vector<CheckRow>& check_rows();

/// "all", "none" or names separated by commas. Throws BadInput naming the checks there are.
Checks parse_checks(const std::string& text);

/// Runs the program under the checks. A trap of the machine ends the run; findings made until then are kept,
/// and `trap`, where not null, receives it.
CheckReport run_checked(const Program&, const TensorMap& inputs, const MachineOptions&, const Checks&,
                        std::optional<Trap>* trap = nullptr);

}  // namespace assay::vm
