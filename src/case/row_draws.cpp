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

namespace plain {
constexpr std::string_view kInstructionSet = "baseline";
constexpr int kRegisterBytes = 16;
#include "src/case/row_draws.inc"
}  // namespace plain

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::string_view kInstructionSet = "avx2";
constexpr int kRegisterBytes = 32;
#include "src/case/row_draws.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::string_view kInstructionSet = "avx512f";
constexpr int kRegisterBytes = 64;
#include "src/case/row_draws.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

std::vector<RowDraws> runnable_row_draws() {
  std::vector<RowDraws> runnable = {plain::table};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) runnable.push_back(avx2::table);
  if (__builtin_cpu_supports("avx512f")) runnable.push_back(avx512::table);
#endif
  return runnable;
}

const RowDraws& row_draws() {
  static const RowDraws best = runnable_row_draws().back();
  return best;
}

}  // namespace assay
