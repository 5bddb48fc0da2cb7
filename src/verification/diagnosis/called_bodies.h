// A function's body as it stands in an unoptimised program once for each call (kernels/inline_calls.h): of a
// slip in it all of them are wrong, and alike.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/vm/code.h"

namespace assay {

class CalledBodies {
 public:
  struct Site {
    size_t launch = 0, op = 0;
  };
  /// Numbers of an op's line and of the calls around it; -1: it has no line.
  struct Where {
    int line = -1, body = -1;
  };
  /// `where`: by op.
  void add(size_t launch, const vm::Code&, const std::vector<Where>& where);

  /// The op in every call of its function; null: it is of none that was inlined.
  const std::vector<Site>* alike(const Site&) const;
  /// Registers that the op's own body writes, the nearest first.
  std::vector<vm::Slot> own_registers(const Site&) const;
  /// What a register of one call is in another; no_slot: nothing.
  vm::Slot in_call(const Site& from, vm::Slot, const Site& to) const;

 private:
  struct Name {
    int depth = 0;
    std::string own;  ///< the same in every call
  };
  static Name name_of(const std::string& reg);
  struct Op {
    int body = -1, depth = 0, sites = -1;
  };
  struct Launch {
    std::vector<Op> ops;
    std::unordered_map<vm::Slot, Name> names;
    std::map<std::pair<int, std::string>, vm::Slot> slots;
    std::map<int, std::map<vm::Slot, size_t>> written;  ///< by body: where first
  };
  std::map<size_t, Launch> launches_;
  std::unordered_map<std::string, int> sites_number_;  ///< by an op's text in own names
  std::vector<std::vector<Site>> sites_;
};

}  // namespace assay
