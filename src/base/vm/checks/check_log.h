// Findings as they are made: one per kind and pair of instructions, later ones counted.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/program/source_place.h"
#include "src/base/vm/check_report.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// "thread (3,0,0) of block (0,0,0)".
std::string thread_text(const CheckedPlace&);
/// Memory by name: "o[b=0,t=1,h=0,v=2]", "shared tile + 128", "local byte 4".
std::string memory_text(const Block&, ptx::Space, uint64_t address);

/// What a finding of a kind says. {at}, {thread} and {access} are where it showed, which thread and what that
/// did; {other...} the same of the second place; {element} the memory or register concerned. What else stands
/// in braces is given beside them.
struct CheckSentence {
  CheckKind kind;
  const char* text;
};

class CheckLog {
 public:
  /// Findings kept per kind; further instructions are only counted.
  static constexpr size_t kept_per_kind = 32;

  void enter(const LaunchContext& context) { context_ = &context; }
  /// True: a finding of this kind at these two (ops, or what else tells findings apart) is new, and tell()
  /// must follow. Else it is counted.
  bool opens(const CheckSentence&, const void* at, const void* other = nullptr);
  /// What the opened finding says. `more`: what its sentence names beyond places and element.
  template <class... More>
  CheckFinding& tell(CheckedPlace at, std::optional<CheckedPlace> other, std::string element, More... more) {
    CheckFinding& made = findings_.back();
    made.at = std::move(at), made.other = std::move(other), made.element = std::move(element);
    const CheckedPlace& second = made.other ? *made.other : made.at;
    made.message = fmt::format(
        fmt::runtime(opened_->text), fmt::arg("at", source_place(made.at.where)),
        fmt::arg("thread", thread_text(made.at)), fmt::arg("access", made.at.access),
        fmt::arg("other", source_place(second.where)), fmt::arg("other_thread", thread_text(second)),
        fmt::arg("other_access", second.access), fmt::arg("element", made.element), more...);
    return made;
  }
  /// Of thread `thread` (as Check::thread_of counts) of what begins at block `block`, at an op of the launch
  /// that runs.
  CheckedPlace place(const Op&, uint64_t block, uint32_t thread, std::string access) const;
  std::vector<CheckFinding> take();

 private:
  const LaunchContext* context_ = nullptr;
  const CheckSentence* opened_ = nullptr;
  std::vector<CheckFinding> findings_;
  std::map<std::tuple<CheckKind, const void*, const void*, int32_t>, size_t> known_;
  std::map<CheckKind, size_t> kept_;
};

}  // namespace assay::vm
