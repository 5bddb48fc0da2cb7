// How values other than decays are drawn. One row each in values.def; the row carries the behaviour.
#pragma once
#include <string_view>
#include <vector>

#include "src/case/case.h"
#include "src/case/random.h"

namespace assay {

/// What one element is drawn from. `channels` is the size of the last axis.
struct ValueDraw {
  const RandomStream& random;
  const Case& drawn;
  std::string_view argument;  ///< "q", "k", "v", "initial_state"
  Coordinates at;
  int64_t channels = 1;
  bool removes = false;  ///< the operator takes out of its state what it reads there
};

struct ValueKind {
  std::string_view name;
  std::string_view summary;
  double (*draw)(const ValueDraw&) = nullptr;
  /// `count` channels from `at` on at once, the same bits; null where channels are drawn one by one.
  void (*draw_row)(const ValueDraw&, int64_t count, double* out) = nullptr;
};

/// All kinds, in the order of values.def.
const std::vector<ValueKind>& value_kinds();
/// By name; throws BadInput with the nearest name.
const ValueKind& find_values(std::string_view name);

}  // namespace assay
