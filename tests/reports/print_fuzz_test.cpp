#include "reports/print_fuzz.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/coverage.h"
#include "reports/html.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

std::string printed(const FuzzRun& run, bool details) {
  return test::printed([&](const Console& console) { print_fuzz_run(console, run, details); });
}

Verification judged(const std::string& token, double ratio, int64_t undecided) {
  Verification v;
  v.kernel = "gla.chunk", v.case_ = parse_token(token);
  OutputComparison o;
  o.name = "o", o.elements = 4, o.undecided = undecided, o.max_ratio = ratio;
  o.max_tightness = undecided > 0 ? 0 : ratio;
  v.outputs = {o};
  return v;
}

FuzzRun run_of(const std::vector<Verification>& cases) {
  FuzzRun run = fuzz_run_from_json(test::fuzz_run(0));
  Coverage coverage;
  for (const Verification& v : cases) coverage.add(v);
  run.kernels = {"gla.chunk"}, run.reached.clear();
  run.coverage = coverage.coverage(), run.tightness = coverage.tightness();
  return run;
}

TEST(PrintFuzz, WhatIsUndecidedIsCountedAndInNoMaximum) {
  const FuzzRun run = run_of({judged("gla.chunk/T80/K4/V4/bf16/mild", 0.25, 0),
                              judged("gla.chunk/T80/K4/V4/bf16/mild", HUGE_VAL, 3),
                              judged("gla.chunk/T80/K4/V4/fp16/mild", HUGE_VAL, 1)});
  for (const bool details : {false, true}) {
    const std::string text = printed(run, details);
    EXPECT_EQ(text.find(" inf"), std::string::npos) << text;
    EXPECT_NE(text.find(" 0.250 "), std::string::npos) << text;
    EXPECT_NE(text.find("worst error /     undecided\n"), std::string::npos) << text;
    EXPECT_NE(text.find("decay             2\n"), std::string::npos) << text;
  }
  const std::string page = render_html(to_json(run));
  EXPECT_NE(page.find("outputs undecided"), std::string::npos);
  EXPECT_EQ(page.find(">inf<"), std::string::npos);
}

TEST(PrintFuzz, WhereEveryCaseIsDecidedNothingSpeaksOfTheUndecided) {
  const std::string text = printed(run_of({judged("gla.chunk/T80/K4/V4/bf16/mild", 0.25, 0)}), false);
  EXPECT_EQ(text.find("undecided:"), std::string::npos) << text;
  EXPECT_NE(text.find("worst error / bound at\n"), std::string::npos) << text;
}

TEST(PrintFuzz, ADeclarationThatNoErrorComesNearToIsCalledGenerous) {
  const auto said = [](double largest, size_t cases) {
    return printed(run_of(std::vector(cases, judged("gla.chunk/T80/K4/V4/bf16/mild", largest, 0))), false)
               .find("gla.chunk: no error came nearer to its bound than 1/1e+05 of it") != std::string::npos;
  };
  EXPECT_TRUE(said(1e-5, 5));
  EXPECT_FALSE(said(1e-5, 4)) << "of too few cases nothing is said";
  EXPECT_FALSE(said(0.5, 5));
}

}  // namespace
}  // namespace assay
