#include "reports/annotations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

TEST(Annotations, APassHasNone) {
  EXPECT_EQ(render_github_annotations(test::passed_verification()), "");
  EXPECT_EQ(render_github_annotations(test::fuzz_run(0)), "");
}

TEST(Annotations, AFindingIsAnErrorAtItsLineWithItsReplayLine) {
  const std::string line = render_github_annotations(test::nan_verification());
  EXPECT_TRUE(line.starts_with(
      "::error file=kernels/gla/chunk.cu,line=142,title=gla.chunk%3A mask-after-exponential::"))
      << line;
  EXPECT_NE(
      line.find(
          "%0Acause mask-after-exponential (94 %25): a masked lane overflows%0Aassay replay gla.chunk/"),
      std::string::npos)
      << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Annotations, KnownFindingsAreNoticesAndUndecidedOnesWarnings) {
  json run = test::fuzz_run(3);
  run["findings"][0]["known"] = true;
  run["findings"][1]["verdict"] = "undecided";
  const std::string lines = render_github_annotations(run);
  EXPECT_TRUE(lines.starts_with("::notice ")) << lines;
  EXPECT_NE(lines.find("(known)"), std::string::npos);
  EXPECT_NE(lines.find("\n::warning "), std::string::npos);
  EXPECT_NE(lines.find("\n::error "), std::string::npos);
}

/// Whatever the texts hold, each finding stays one command whose properties end where they should.
TEST(Annotations, NothingInATextBecomesACommandOrAProperty) {
  json v = test::nan_verification();
  v["kernel"] = "a,line=1::b%";
  v["origin"]["where"]["file"] = "x,y:z.cu";
  v["origin"]["sentence"] = "first\r\n::error file=evil::second 100%";
  const std::string line = render_github_annotations(v);
  EXPECT_TRUE(
      line.starts_with("::error file=x%2Cy%3Az.cu,line=142,title=a%2Cline=1%3A%3Ab%25%3A "
                       "mask-after-exponential::first%0D%0A::error file=evil::second 100%25"))
      << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Annotations, RefuseWhatIsNoResult) {
  EXPECT_THROW(render_github_annotations(json::array()), BadInput);
}

}  // namespace
}  // namespace assay
