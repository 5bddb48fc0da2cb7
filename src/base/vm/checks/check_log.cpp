#include "src/base/vm/checks/check_log.h"

#include <algorithm>
#include <utility>

namespace assay::vm {

bool CheckLog::opens(const CheckSentence& sentence, const void* at, const void* other) {
  const auto [known, is_new] =
      known_.try_emplace({sentence.kind, at, other, context_->launch_index}, findings_.size());
  if (!is_new) {
    if (known->second < findings_.size()) ++findings_[known->second].count;
    return false;
  }
  if (kept_[sentence.kind]++ >= kept_per_kind) {
    known->second = ~size_t{0};
    return false;
  }
  findings_.push_back({.check = check_of(sentence.kind), .kind = sentence.kind});
  opened_ = &sentence;
  return true;
}

CheckedPlace CheckLog::place(const Op& op, uint64_t block, uint32_t thread, std::string access) const {
  const ThreadPlace at = place_of_thread(*context_->launch, context_->cluster, block, thread);
  return {where(*context_->code, op), at.block, at.thread, std::move(access)};
}

/// Unrolled code makes many instructions of a line: findings between the same lines are one.
std::vector<CheckFinding> CheckLog::take() {
  known_.clear();
  kept_.clear();
  std::vector<CheckFinding> all = std::exchange(findings_, {}), taken;
  const auto same_place = [](const SourceLocation& a, const SourceLocation& b) {
    return a.line > 0 && source_place(a) == source_place(b);
  };
  for (CheckFinding& finding : all) {
    const auto known = std::find_if(taken.begin(), taken.end(), [&](const CheckFinding& other) {
      return other.kind == finding.kind && same_place(other.at.where, finding.at.where) &&
             other.other.has_value() == finding.other.has_value() &&
             (!finding.other || same_place(other.other->where, finding.other->where));
    });
    if (known == taken.end())
      taken.push_back(std::move(finding));
    else
      known->count += finding.count;
  }
  return taken;
}

std::string thread_text(const CheckedPlace& p) {
  return fmt::format("thread ({},{},{}) of block ({},{},{})", p.thread[0], p.thread[1], p.thread[2],
                     p.block[0], p.block[1], p.block[2]);
}

namespace {

/// Whose shared memory it is, where several blocks run together.
std::string member_text(const Block& block, uint32_t rank) {
  if (block.members == 1) return "";
  if (!block.context->together) return fmt::format(" of block {} of the cluster", rank);
  const auto [x, y, z] = member_index(*block.context->launch, block.context->cluster, block.linear, rank);
  return fmt::format(" of block ({},{},{})", x, y, z);
}

}  // namespace

std::string memory_text(const Block& block, ptx::Space space, uint64_t address) {
  const Code& code = *block.context->code;
  if (space == ptx::Space::shared) {
    const uint64_t stride = std::max<uint64_t>(block.shared_stride, 1), rank = address / stride;
    return "shared " + area_text(code.shared_areas, address % stride) +
           member_text(block, static_cast<uint32_t>(rank));
  }
  if (space == ptx::Space::local) return "local " + area_text(code.local_areas, address);
  return block.context->memory->describe(address);
}

}  // namespace assay::vm
