#include "kernels/scalar/chunk_layout.h"

#include <gtest/gtest.h>

#include "kernels/device/format_sizes.h"

namespace assay::scalar {
namespace {

TEST(ScalarLayout, SharedMemoryIsWhatABlockMayHave) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    const FormatSizes format = device::format_sizes(dtype);
    const ScanStageLayout stage(format);
    for (const int bytes : {stage.shared_bytes(), ProductLayout(format).bytes, GradientLayout(format).bytes,
                            FusedLayout(format).bytes, ParallelLayout(format).bytes}) {
      EXPECT_GT(bytes, 0);
      EXPECT_LE(bytes, device::most_shared_bytes);
    }
    // Kernels take step % count by a mask.
    EXPECT_EQ(stage.count & (stage.count - 1), 0);
  }
}

TEST(ScalarLayout, PartsOfAStateCoverIt) {
  for (const int64_t K : {1, 64, 65, 256})
    for (const int64_t V : {1, 32, 33, 256}) {
      EXPECT_GE(scan_parts(K, V) * step_channels * scan_columns, K * V);
      EXPECT_GE(device::padded_state(K, V), K * V);
      EXPECT_EQ(device::padded_state(K, V) % 256, 0);
    }
}

}  // namespace
}  // namespace assay::scalar
