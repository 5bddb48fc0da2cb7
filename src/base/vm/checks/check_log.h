// Findings as they are made: one per kind and pair of instructions, later ones counted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/vm/check_report.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

/// A thread at an op of the launch that runs; `thread` is linear in its block, `block` in the grid.
struct Site {
  const Op* op = nullptr;
  uint64_t block = 0;
  uint32_t thread = 0;
};

class CheckLog {
 public:
  /// What a kind is called and which check makes it.
  struct Kind {
    const char* check;
    const char* name;
  };
  /// Findings kept per kind; further instructions are only counted.
  static constexpr size_t kept_per_kind = 32;

  void enter(const LaunchContext& context) { context_ = &context; }
  /// The finding to fill in, or null where one of this kind at these two (ops, or what else tells findings
  /// apart) is known: it is counted.
  CheckFinding* open(const Kind&, const void* at, const void* other = nullptr);
  CheckedPlace place(const Site&, std::string access) const;
  std::vector<CheckFinding> take();
  size_t size() const { return findings_.size(); }

 private:
  const LaunchContext* context_ = nullptr;
  std::vector<CheckFinding> findings_;
  std::map<std::tuple<const char*, const void*, const void*, int32_t>, size_t> known_;
  std::map<const char*, size_t> kept_;
};

/// "kernels/gla/chunk.cu:142", or "k, PTX line 17" without line information.
std::string place_text(const SourceLocation&);
/// "thread (3,0,0) of block (0,0,0)".
std::string thread_text(const CheckedPlace&);
/// Memory by name: "o[b=0,t=1,h=0,v=2]", "shared tile + 128", "local byte 4".
std::string memory_text(const Block&, ptx::Space, uint64_t address);

}  // namespace assay::vm
