#include "kernels/channel/case_layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/device/recurrent_capacity.h"
#include "kernels/gla/fused_chunk_layout.h"
#include "kernels/module_text.h"

namespace assay::channel {
namespace {

/// Cases of every pair of formats, with few heads and with many.
template <typename Visit>
void for_each_case(const Visit& visit) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
    for (const Dtype gate_dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
      for (const int64_t heads : {1, 100})
        for (const int64_t K : {1, 16, 17, 64, 65, 128, 200, 256})
          for (const int64_t V : {1, 32, 33, 64, 65, 256}) {
            Case c;
            c.dtype = dtype, c.gate_dtype = gate_dtype;
            c.B = 1, c.T = 65, c.H = heads, c.K = K, c.V = V;
            const ResolvedCase resolved = resolve_unchecked(c, find_operator("gla"));
            visit(resolved, CaseLayout(resolved));
          }
}

TEST(CaseLayout, SharedMemoryIsWhatABlockMayHave) {
  for_each_case([](const ResolvedCase& c, const CaseLayout& layout) {
    for (const int bytes :
         {layout.state_shared(scan_columns(c, layout)),
          layout.state_shared(scan_columns(c, layout), layout.element.kept), layout.output_shared(),
          layout.keys_shared(), layout.keys_shared(layout.element.kept),
          layout.keys_layout().bytes_with_slots, layout.keys_layout(layout.element.kept).bytes_with_slots,
          gla::FusedLayout(layout.element, layout.gate, layout.exchange).bytes}) {
      EXPECT_GT(bytes, 0);
      EXPECT_LE(bytes, device::most_shared_bytes) << token_of(c.case_);
    }
  });
}

/// gsa's scan beside outputs of at most 64 channels, of which a multiprocessor holds four blocks; of gates of
/// four bytes three.
TEST(CaseLayout, AScanBesideFourBlocksOfOutputsLeavesThemTheirShare) {
  for_each_case([](const ResolvedCase& c, const CaseLayout& layout) {
    if (output_suffix(c).empty()) return;
    const int width = scan_columns(c, layout);
    EXPECT_LE(std::max(layout.state_shared(width, layout.element.kept, 4), layout.output_shared()),
              layout.gate == 2 ? device::quarter_of_shared_bytes : device::third_of_shared_bytes)
        << token_of(c.case_);
    const auto holds = [&](const std::string& function) {
      return kernel_module(fmt::format("gsa/chunk_backward.bf16.{}", format(c.gate_dtype).name))
                 .ptx->find(".entry " + function + "(") != std::string::npos;
    };
    EXPECT_TRUE(holds(fmt::format("gsa_chunk_adjoints_{}_64", width))) << token_of(c.case_);
    EXPECT_TRUE(holds("gsa_chunk_values_64")) << token_of(c.case_);
  });
}

TEST(CaseLayout, ModulesHoldTheWidthsAndCapacitiesThatAreAskedFor) {
  for_each_case([](const ResolvedCase& c, const CaseLayout& layout) {
    const int width = scan_columns(c, layout);
    const auto holds = [&](const char* mode, const std::string& function) {
      return gla_module(mode, c.dtype, c.gate_dtype).ptx->find(".entry " + function + "(") !=
             std::string::npos;
    };
    EXPECT_TRUE(holds("chunk", fmt::format("gla_chunk_state_{}", width))) << token_of(c.case_);
    EXPECT_TRUE(holds("chunk_backward", fmt::format("gla_chunk_scans_{}", width))) << token_of(c.case_);
    EXPECT_TRUE(holds("chunk", "gla_chunk_output" + output_suffix(c))) << token_of(c.case_);
    EXPECT_TRUE(holds("chunk_backward", "gla_chunk_values" + output_suffix(c))) << token_of(c.case_);
    EXPECT_TRUE(holds("fused_chunk", fmt::format("gla_fused_chunk_{}", device::fused_capacity(c.sizes.K))))
        << token_of(c.case_);
    EXPECT_TRUE(
        holds("fused_recurrent", fmt::format("gla_fused_recurrent_{}", device::capacity_for(c.sizes.K))))
        << token_of(c.case_);
  });
}

TEST(CaseLayout, CapacitiesAreTheSmallestThatAreEnough) {
  for (int64_t channels = 1; channels <= 256; ++channels) {
    const device::Capacity capacity(channels);
    EXPECT_GE(capacity.columns, channels);
#define EXPECT_TOO_SMALL(other) EXPECT_TRUE(other >= capacity.columns || other < channels) << channels;
    FOR_EACH_CAPACITY(EXPECT_TOO_SMALL)
#undef EXPECT_TOO_SMALL
    EXPECT_EQ(capacity.per_lane * capacity.lanes, capacity.columns);
    EXPECT_EQ(capacity.lanes * capacity.rows, device::scan_threads);
  }
}

}  // namespace
}  // namespace assay::channel
