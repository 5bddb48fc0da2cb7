#include "src/campaign/sweep/sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/result/merged.h"
#include "src/verification/verify/verify.h"
#include "tests/result/schema_check.h"

namespace assay {
namespace {

using nlohmann::json;

/// Two kernels, two lengths, two decays, two seeds: 8 points.
SweepOptions small() {
  SweepOptions options;
  options.kernels = {&find_kernel("gla.chunk"), &find_kernel("gla.fused_recurrent")};
  options.base.kernel = "gla.chunk";
  options.base.K = options.base.V = 8;
  options.dimensions = {parse_dimension("length=5,20"), parse_dimension("decay=none,reset")};
  options.seeds = 2;
  options.jobs = 1;
  return options;
}

Sweep run(const SweepOptions& options) {
  const auto backend = make_vm_backend({});
  return sweep(options, *backend);
}

/// The result without what a clock measured.
json timeless(const Sweep& result) {
  json document = to_json(result);
  document.erase("seconds");
  for (json& cell : document["cells"]) cell.erase("seconds_kernel"), cell.erase("seconds_reference");
  for (json& v : document["worst"]) {
    v.erase("seconds_kernel"), v.erase("seconds_reference");
    if (v["formula"].is_object()) v["formula"].erase("seconds");
    if (v["shadow"].is_object()) v["shadow"].erase("seconds"), v["shadow"].erase("seconds_by_line");
  }
  return document;
}

struct ScratchFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("assay_sweep_test_" + std::to_string(::getpid()));
  ScratchFile() { std::filesystem::remove(path); }
  ~ScratchFile() { std::filesystem::remove(path); }
};

const Sweep& ran() {
  static const Sweep result = run(small());
  return result;
}

TEST(Sweep, HasACellForEveryKernelSettingAndOutputInTheOrderAskedFor) {
  const Sweep& result = ran();
  std::vector<std::string> expected, got;
  for (const char* length : {"5", "20"})
    for (const char* decay : {"none", "reset"})
      for (const char* kernel : {"gla.chunk", "gla.fused_recurrent"})
        for (const char* output : {"o", "final_state"})
          expected.push_back(std::string(kernel) + " length=" + length + " decay=" + decay + " " + output);
  for (const SweepCell& cell : result.cells)
    got.push_back(cell.kernel + " " + settings_text(cell) + " " + cell.output);
  EXPECT_EQ(got, expected);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.seeds, (std::vector<uint64_t>{1, 2}));
}

TEST(Sweep, EveryCellHoldsAllItsSeedsAndTheGatesDrawn) {
  for (const SweepCell& cell : ran().cells) {
    EXPECT_EQ(cell.verdict, CellVerdict::pass) << cell.token;
    ASSERT_EQ(cell.samples.size(), 2u);
    EXPECT_EQ(cell.samples[0].seed, 1u);
    EXPECT_EQ(cell.samples[1].seed, 2u);
    const int64_t length = std::stoll(setting(cell, "length"));
    EXPECT_EQ(cell.elements, 2 * 8 * (cell.output == "o" ? length : 8)) << cell.token;
    EXPECT_TRUE(cell.gated);
    const bool none = setting(cell, "decay") == "none";
    EXPECT_EQ(cell.gate_max == 0 && cell.gate_min == 0, none) << cell.token;
    EXPECT_EQ(cell.gate_min < -1000, !none) << cell.token;
  }
}

TEST(Sweep, TheWorstCasesTokenGivesTheStatedRatioAgain) {
  const auto backend = make_vm_backend({});
  for (const SweepCell& cell : ran().cells) {
    const Case c = parse_token(cell.token);
    const Verification v = verify(c, find_kernel(cell.kernel), *backend, {});
    for (const OutputComparison& output : v.outputs) {
      if (output.name != cell.output) continue;
      EXPECT_EQ(output.max_ratio, cell.over_seeds.max_ratio) << cell.token;
    }
    EXPECT_TRUE(c.seed == 1 || c.seed == 2);
  }
}

TEST(Sweep, TheWorstRunOfEachKernelIsThatOfItsLargestRatio) {
  const Sweep& result = ran();
  ASSERT_EQ(result.worst.size(), 2u);
  for (const Verification& v : result.worst) {
    double largest = 0, own = 0;
    for (const SweepCell& cell : result.cells)
      if (cell.kernel == v.kernel) largest = std::max(largest, cell.over_seeds.max_ratio);
    for (const OutputComparison& output : v.outputs) own = std::max(own, output.max_ratio);
    EXPECT_EQ(own, largest) << v.token;
    EXPECT_TRUE(v.shadow) << v.token;
  }
}

TEST(Sweep, KernelsAreComparedOnTheSameInputs) {
  const Sweep& result = ran();
  for (size_t i = 0; i < result.cells.size(); i += 4) {
    const SweepCell &first = result.cells[i], &second = result.cells[i + 2];
    ASSERT_NE(first.kernel, second.kernel);
    ASSERT_EQ(settings_text(first), settings_text(second));
    EXPECT_EQ(first.gate_min, second.gate_min);
    // The exact values are the same numbers, up to the enclosure of the reference.
    EXPECT_NEAR(first.samples[0].rms_exact, second.samples[0].rms_exact, 1e-9 * first.samples[0].rms_exact);
  }
}

TEST(Sweep, DoesNotDependOnTheNumberOfJobs) {
  SweepOptions options = small();
  options.jobs = 3;
  EXPECT_EQ(timeless(run(options)), timeless(ran()));
}

TEST(Sweep, InterruptedAnywhereItGoesOnToTheSameResult) {
  for (const int64_t at : {1, 3, 7}) {
    const ScratchFile file;
    SweepOptions options = small();
    options.journal = file.path;
    std::atomic<int> signal = 0;
    options.interrupted = &signal;
    options.progress = [&](double, int64_t done, int64_t, double) { signal = done == at; };
    const Sweep part = run(options);
    EXPECT_FALSE(part.complete);
    EXPECT_EQ(part.cells.size(), static_cast<size_t>(at) * 2);
    EXPECT_TRUE(part.worst.empty());
    int64_t fresh = 0;
    signal = 0;
    options.progress = [&](double, int64_t, int64_t, double) { ++fresh; };
    EXPECT_EQ(timeless(run(options)), timeless(ran())) << at;
    EXPECT_EQ(fresh, 8 - at);
  }
}

TEST(Sweep, ProgressEndsWithAllOfTheWork) {
  SweepOptions options = small();
  std::vector<double> seen;
  options.progress = [&](double fraction, int64_t, int64_t points, double) {
    EXPECT_EQ(points, 8);
    seen.push_back(fraction);
  };
  run(options);
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_NEAR(seen.back(), 1, 1e-12);
}

TEST(Sweep, AFindingsTokenIsOfARunThatFindsItHoweverLargeOtherRatiosAre) {
  SweepOptions options = small();
  options.kernels = {&find_kernel("gla.chunk@S1")};
  options.base.kernel = "gla.chunk@S1";
  options.base.T = 80;
  options.dimensions = {parse_dimension("decay=none,extreme")};
  options.seeds = 3;
  const Sweep result = run(options);
  const auto backend = make_vm_backend({});
  int findings = 0;
  for (const SweepCell& cell : result.cells) {
    EXPECT_EQ(cell.verdict, setting(cell, "decay") == "none" ? CellVerdict::pass : cell.verdict);
    if (cell.verdict != CellVerdict::finding) continue;
    ++findings;
    EXPECT_GT(cell.nonfinite, 0);
    const Verification v = verify(parse_token(cell.token), find_kernel(cell.kernel), *backend, {});
    EXPECT_EQ(v.verdict, Verdict::finding) << cell.token;
  }
  EXPECT_GT(findings, 0);
}

TEST(Sweep, PointsThatAreRefusedAreCellsAndASweepOfThemAloneIsBadInput) {
  SweepOptions options = small();
  options.kernels.pop_back();
  options.seeds = 1;
  options.dimensions = {parse_dimension("without=nothing,nosuch")};
  const Sweep result = run(options);
  EXPECT_EQ(result.cells.front().verdict, CellVerdict::pass);
  EXPECT_EQ(result.cells.back().verdict, CellVerdict::refused);
  EXPECT_NE(result.cells.back().note.find("nosuch"), std::string::npos) << result.cells.back().note;
  options.dimensions = {parse_dimension("without=nosuch")};
  EXPECT_THROW(run(options), BadInput);
}

TEST(Sweep, MistakesAreBadInput) {
  const auto mistaken = [](auto change) {
    SweepOptions options = small();
    change(options);
    EXPECT_THROW(run(options), BadInput);
  };
  mistaken([](SweepOptions& o) { o.kernels.clear(); });
  mistaken([](SweepOptions& o) { o.seeds = 0; });
  mistaken([](SweepOptions& o) { o.kernels.push_back(&find_kernel("rwkv6.chunk")); });
  mistaken([](SweepOptions& o) { o.dimensions.push_back(parse_dimension("length=7")); });
}

TEST(Sweep, ItsDocumentHoldsAgainstTheSchemaAndComesBack) {
  std::ifstream file(ASSAY_SOURCE_DIR "/reports/schema.json");
  const SchemaCheck check(json::parse(file));
  const json document = to_json(ran());
  for (const std::string& error : check.errors(document)) ADD_FAILURE() << error;
  EXPECT_EQ(to_json(sweep_from_json(json::parse(document.dump()))), document);
}

TEST(Sweep, ItsShardsMergedAreTheWholeSweep) {
  std::vector<json> documents;
  for (int64_t number = 1; number <= 3; ++number) {
    SweepOptions options = small();
    options.shard = {number, 3};
    documents.push_back(to_json(run(options)));
    EXPECT_LT(documents.back()["cells"].size(), ran().cells.size());
  }
  // In any order.
  std::vector<ResultPart> parts{{"3", &documents[2]}, {"1", &documents[0]}, {"2", &documents[1]}};
  json all = timeless(sweep_from_json(merged(parts)));
  const json whole = timeless(ran());
  EXPECT_EQ(all["cells"], whole["cells"]);
  EXPECT_EQ(all["complete"], true);
  ASSERT_EQ(all["worst"].size(), whole["worst"].size());
  for (const json& v : whole["worst"])
    EXPECT_TRUE(std::any_of(all["worst"].begin(), all["worst"].end(), [&](const json& other) {
      return other["token"] == v["token"];
    })) << v["token"];
  parts.pop_back();
  EXPECT_EQ(merged(parts)["complete"], false);
  parts.push_back(parts.front());
  parts.back().source = "again";
  EXPECT_THROW(merged(parts), BadInput);
}

}  // namespace
}  // namespace assay
