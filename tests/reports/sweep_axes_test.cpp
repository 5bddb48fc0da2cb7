#include "reports/sweep_axes.h"

#include <gtest/gtest.h>

#include "tests/result/sample_sweep.h"

namespace assay {
namespace sweep_axes_test {

Sweep sweep_of(std::vector<SweepDimension> dimensions) {
  return test::sweep_of({"gla.chunk", "gla.fused_chunk"}, std::move(dimensions), 1, [](SweepCell&) {});
}

TEST(SweepAxes, LengthsGoAlongXWhereThereAreSeveral) {
  const SweepAxes axes =
      axes_of(sweep_of({{"decay", {"mild", "strong", "reset"}}, {"length", {"64", "4096"}}}));
  EXPECT_EQ(axes.x, "length");
  EXPECT_TRUE(axes.logarithmic);
  EXPECT_EQ(axes.options, (std::vector<std::string>{"decay"}));
  EXPECT_EQ(axes.series, (std::vector<std::string>{"mild", "strong", "reset"}));
  EXPECT_EQ(axes.series_name(), "decay");
}

TEST(SweepAxes, OtherwiseNumbersThenWhatHasMostValuesAndAFormatLast) {
  EXPECT_EQ(axes_of(sweep_of({{"length", {"64"}}, {"heads", {"1", "2"}}, {"decay", {"a", "b", "c"}}})).x,
            "heads");
  EXPECT_EQ(axes_of(sweep_of({{"decay", {"a", "b"}}, {"inputs", {"a", "b", "c"}}})).x, "inputs");
  EXPECT_EQ(axes_of(sweep_of({{"dtype", {"bf16", "fp16", "fp32"}}, {"decay", {"a"}}})).x, "decay");
}

TEST(SweepAxes, AZeroOrAWordMakesXAListOfPlaces) {
  const Sweep sweep = sweep_of({{"scale", {"0", "1", "16"}}});
  const SweepAxes axes = axes_of(sweep);
  EXPECT_FALSE(axes.logarithmic);
  std::vector<double> places;
  for (const SweepCell& cell : sweep.cells)
    if (cell.kernel == "gla.chunk") places.push_back(axes.x_of(cell));
  EXPECT_EQ(places, (std::vector<double>{0, 1, 2}));
  const Sweep numbers = sweep_of({{"scale", {"0.5", "1", "16"}}});
  EXPECT_EQ(axes_of(numbers).x_of(numbers.cells.front()), 0.5);
}

TEST(SweepAxes, OfSeveralOptionsASeriesHasAllButTheFormat) {
  const Sweep sweep = sweep_of(
      {{"length", {"64", "128"}}, {"decay", {"mild"}}, {"heads", {"4"}}, {"dtype", {"bf16", "fp32"}}});
  const SweepAxes axes = axes_of(sweep);
  EXPECT_EQ(axes.series, (std::vector<std::string>{"mild, 4"}));
  EXPECT_EQ(axes.series_name(), "decay, heads");
  EXPECT_EQ(axes_of(sweep_of({{"length", {"64", "128"}}})).series_name(), "the kernel");
}

TEST(SweepAxes, APanelIsAnOutputInAFormatOfOneKernelOrOfAll) {
  const Sweep sweep = sweep_of({{"length", {"64"}}, {"dtype", {"bf16", "fp32"}}});
  const auto names = [](const std::vector<SweepPanel>& panels) {
    std::vector<std::string> all;
    for (const SweepPanel& p : panels) all.push_back(p.kernel + "/" + p.output + "/" + p.dtype);
    return all;
  };
  EXPECT_EQ(names(panels_of(sweep, false)), (std::vector<std::string>{"/o/bf16", "/o/fp32"}));
  EXPECT_EQ(panels_of(sweep, true).size(), 4u);
  Sweep refused = sweep;
  for (SweepCell& cell : refused.cells) cell.samples.clear();
  EXPECT_TRUE(panels_of(refused, false).empty());
}

TEST(SweepAxes, AFormatThatIsNotSweptIsTheTokens) {
  Sweep sweep = sweep_of({{"length", {"64"}}});
  sweep.cells.front().token = "gla.chunk/B1/T64/H1/K8/V8/fp16/g-fp32/mild/s1";
  EXPECT_EQ(dtype_of(sweep.cells.front()), "fp16");
}

}  // namespace sweep_axes_test
}  // namespace assay
