// What the checking machine found out about a run, beside its outputs: data, for the result and its
// renderers.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/program/byte_set.h"
#include "src/base/program/outcome.h"

namespace assay {

/// One thread at one instruction.
struct CheckedPlace {
  SourceLocation where;
  std::array<uint32_t, 3> block{}, thread{};
  std::string access;  ///< "written", "read", "read by ldmatrix.sync ...": what the thread did there
};
template <typename Io>
void fields(Io& io, CheckedPlace& x) {
  io.type("checked_place", "one thread at one instruction");
  ASSAY_FIELD(where);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(access);
}

/// The rows of checks.def.
enum class CheckName : uint8_t {
#define CHECK(type, member, name, summary) member,
#include "src/base/vm/checks/checks.def"
};
constexpr auto names_of(CheckName) {
  return std::to_array<std::string_view>({
#define CHECK(type, member, name, summary) name,
#include "src/base/vm/checks/checks.def"
  });
}

/// Kinds of their findings.
enum class CheckKind : uint8_t {
#define CHECK(type, member, name, summary)
#define KIND(check, member, name) member,
#include "src/base/vm/checks/checks.def"
};
constexpr auto names_of(CheckKind) {
  return std::to_array<std::string_view>({
#define CHECK(type, member, name, summary)
#define KIND(check, member, name) name,
#include "src/base/vm/checks/checks.def"
  });
}
/// The check whose findings are of this kind.
constexpr CheckName check_of(CheckKind kind) {
  constexpr CheckName checks[] = {
#define CHECK(type, member, name, summary)
#define KIND(check, member, name) CheckName::check,
#include "src/base/vm/checks/checks.def"
  };
  return checks[static_cast<size_t>(kind)];
}

/// A further pair of accesses that the same missing barrier leaves without an order.
struct RacingPair {
  CheckKind kind = CheckKind::race;
  std::string message;  ///< one line
  CheckedPlace at, other;
  std::string element;
  uint64_t count = 1;
};
template <typename Io>
void fields(Io& io, RacingPair& x) {
  io.type("racing_pair", "a further pair of accesses that the same missing barrier leaves without an order");
  ASSAY_FIELD(kind);
  ASSAY_FIELD(message);
  ASSAY_FIELD(at);
  ASSAY_FIELD(other);
  ASSAY_FIELD(element);
  ASSAY_FIELD(count);
}

struct CheckFinding {
  CheckName check = CheckName::races;
  CheckKind kind = CheckKind::race;
  /// One line: what, where, by which threads.
  std::string message;
  CheckedPlace at;                    ///< where it showed
  std::optional<CheckedPlace> other;  ///< the other thread of a race; where an unwritten value was read
  std::string element;                ///< "o[b=0,t=3,h=0,v=1]", "shared tile + 128": the memory concerned
  uint64_t count = 1;                 ///< instances of the same kind at the same lines
  std::vector<RacingPair> also;
  bool reads_global = false;  ///< a race of a load of global memory; not written to JSON
};
template <typename Io>
void fields(Io& io, CheckFinding& x) {
  ASSAY_FIELD(check);
  ASSAY_FIELD(kind);
  ASSAY_FIELD(message);
  ASSAY_FIELD(at);
  ASSAY_FIELD(other);
  ASSAY_FIELD(element);
  ASSAY_FIELD(count);
  ASSAY_LATER(also);
}

/// What a check met and what is no finding: nothing that was met is lost.
struct DismissedFinding {
  CheckFinding met;
  std::string reason;
};
template <typename Io>
void fields(Io& io, DismissedFinding& x) {
  io.type("dismissed", "what a check met that is no finding, and why");
  fields(io, x.met);
  ASSAY_FIELD(reason);
}

struct CheckReport {
  std::vector<CheckName> ran;  ///< to the end
  std::string skipped;         ///< why some did not; else empty
  std::vector<CheckFinding> findings;
  std::vector<DismissedFinding> dismissed;
  uint64_t lane_instructions = 0;
  double seconds = 0;
  /// Where only some blocks ran, by output: elements that they have written, from values of their own. Not
  /// written to JSON.
  std::map<std::string, std::vector<uint8_t>> settled;
  /// What the run has left of Checks::unwritten_bytes. Not written to JSON.
  std::map<std::string, ByteSet> unwritten;

  /// Findings that are none, for this reason.
  template <typename IsNone>
  void dismiss(const IsNone& is_none, const std::string& reason) {
    for (CheckFinding& f : findings)
      if (is_none(f)) dismissed.push_back({f, reason});
    std::erase_if(findings, is_none);
  }
};
template <typename Io>
void fields(Io& io, CheckReport& x) {
  io.type("checks", "what the checking machine found");
  ASSAY_FIELD(ran);
  ASSAY_FIELD(skipped, "why some checks did not run; else empty");
  ASSAY_FIELD(findings);
  ASSAY_LATER(dismissed);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds);
}

}  // namespace assay
