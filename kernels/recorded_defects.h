// Defects that the public history of linear-attention kernels records, and what became of each here.
#pragma once
#include <string_view>
#include <vector>

namespace assay {

/// native: of an operator that is here. transplanted: of another one, the same mechanism in a kernel that is
/// here. outside: no kernel can carry it.
enum class DefectGroup { native, transplanted, outside };
std::string_view name_of(DefectGroup);

/// A row of kernels/defects/recorded.def.
struct RecordedDefect {
  std::string_view id;  ///< "S1"
  DefectGroup group;
  std::vector<std::string_view> patches;  ///< "gla.chunk@S1"; empty: outside
  std::string_view title, reason;         ///< reason: why it is outside
};
const std::vector<RecordedDefect>& recorded_defects();

/// The row that names the patch "KERNEL@ID"; null for a planted defect, which nobody ever wrote by mistake.
const RecordedDefect* recorded_as(std::string_view patch);

}  // namespace assay
