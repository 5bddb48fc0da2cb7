// Straight pieces of a Code as host code (AVX-512), for warps of which all lanes run. The interpreter
// (engine.h) is the reference and runs whatever stands in no piece: other hosts, other masks, and what
// `belongs` (compiled_code.cpp) leaves out. Same bits, same counts, same traps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace assay::vm {

struct Code;
struct Warp;
struct Worker;

/// What host code and the engine hand each other.
struct CompiledRun {
  std::byte* file = nullptr;  ///< Warp::file
  Warp* warp = nullptr;
  Worker* worker = nullptr;
  uint64_t executed = 0, lanes = 0;  ///< as the engine counts them
  uint64_t stop = 0;                 ///< of `executed`: branches from there on are the engine's
  int32_t reconverge = -1;           ///< of the warp's split: who comes there leaves
  int32_t pc = 0;                    ///< where it goes on
  uint32_t trapped = 0;
  uint32_t plain = 0, flushing = 0;   ///< MXCSR
  const std::byte* shared = nullptr;  ///< Block::shared
  uint32_t shared_limit[5] = {};      ///< first address too far for 1 << i bytes; 0: all are the rows'
  const void* entry = nullptr;
};

class CompiledCode {
 public:
  virtual ~CompiledCode() = default;
  /// Runs from op `pc` on, where a piece begins, until a piece ends that no other follows, or a trap. The
  /// warp's lanes are all active.
  void run(CompiledRun& run, int32_t pc) const {
    run.entry = entries_[static_cast<size_t>(pc)];
    function_(&run);
  }
  bool begins_at(int32_t pc) const { return entries_[static_cast<size_t>(pc)] != nullptr; }

 protected:
  std::vector<const void*> entries_;  ///< by op; null: no piece begins there
  void (*function_)(CompiledRun*) = nullptr;
};

/// Null where the host cannot run such code.
std::shared_ptr<const CompiledCode> compile(const Code&);
/// Made by the first who asks, and kept as long as the Code.
const CompiledCode* compiled_code(const Code&);

}  // namespace assay::vm
