#include "src/case/row_draws.h"

#include <algorithm>

#include "src/case/portable_constants.h"
#include "src/case/random.h"

namespace assay {
namespace {

constexpr uint64_t kFractionBits = (uint64_t{1} << 52) - 1, kHalfBits = uint64_t{1022} << 52;
/// 2^52 + 2^51: whole numbers near it lie one unit of the last place apart.
constexpr double kWhole = 0x1.8p52;
constexpr uint64_t kWholeBits = 0x4338000000000000u;

#define LOOPS "src/case/row_draws.inc"
#include "reference/instruction_sets.inc"

}  // namespace

std::vector<RowDraws> runnable_row_draws() {
  return runnable_tables();
}

const RowDraws& row_draws() {
  static const RowDraws best = runnable_row_draws().back();
  return best;
}

}  // namespace assay
