// Every operator's bounds, forward and backward, against its own transcription carried out in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "reference/operator.h"
#include "tests/laws/operator_laws.h"

namespace assay {
namespace bound_law_test {

const char* const kDecays[] = {"absent", "none",  "near-one", "logsigmoid",
                               "strong", "reset", "ladder",   "extreme"};
const LawShape kShapes[] = {{1, 1, 1, 1, 1}, {9, 2, 5, 3, 4}, {70, 2, 8, 6, 5}};

TEST(BoundLaw, holds_for_the_transcription_in_fp32_of_every_operator_and_is_not_vacuous) {
  for (const OperatorLaws& law : operator_laws()) {
    uint64_t seed = first_seed(law.name);
    double tightest = 0;
    for (const char* decay : kDecays)
      for (const LawShape& shape : kShapes)
        for (const Fp32Check& check : law.fp32(decay, shape, seed++, 1)) {
          const std::string where =
              law.name + " " + check.output + " " + decay + " T=" + std::to_string(shape.T);
          EXPECT_GT(check.judged, 0) << where;
          EXPECT_EQ(check.outside, 0) << where << " error / bound " << check.ratio << " seed " << seed - 1;
          // States of rwkv7 with removals drawn at random leave the range of fp32.
          const bool unbounded = law.name == "rwkv7";
          if (!unbounded) {
            EXPECT_EQ(check.unbounded, 0) << where;
          }
          tightest = std::max(tightest, check.ratio);
        }
    std::printf("%-18s largest error / bound %.4f\n", law.name.c_str(), tightest);
    EXPECT_GT(tightest, 0.01) << law.name;
  }
}

TEST(BoundLaw, holds_for_inputs_that_were_climbed_to_for_large_errors) {
  const char* text = std::getenv("ASSAY_TEST_SCALE");
  const auto steps = static_cast<int64_t>(600 * (text ? std::atof(text) : 1)) + 20;
  for (const OperatorLaws& law : operator_laws()) {
    uint64_t seed = first_seed(law.name);
    double largest = 0;
    for (const char* decay : {"none", "near-one", "logsigmoid"})
      for (const LawShape& shape : {LawShape{6, 1, 2, 2, 2}, LawShape{20, 1, 1, 1, 2}})
        for (const Fp32Check& check : law.climbed(decay, shape, seed++, steps)) {
          EXPECT_EQ(check.outside, 0) << law.name << " " << check.output << " " << decay << " T=" << shape.T
                                      << " error / bound " << check.ratio << " seed " << seed - 1;
          largest = std::max(largest, check.ratio);
        }
    std::printf("%-18s largest error / bound climbed to %.4f\n", law.name.c_str(), largest);
  }
}

TEST(BoundLaw, of_a_thousandth_of_the_true_errors_is_seen_to_fail_for_every_operator_and_output) {
  for (const OperatorLaws& law : operator_laws()) {
    // Outputs of bound 0 (copies) have no error to take a thousandth of; the law above compares them exactly.
    std::map<std::string, int64_t> outside;
    uint64_t seed = first_seed(law.name);
    // Norms of removals drawn at random grow faster from one removal to the next than errors do: of these
    // there are four.
    const Operator& op = find_operator(law.name);
    const bool by_norms = op.bound_shape == BoundShape::norms;
    const bool writes = std::ranges::any_of(
        op.inputs, [](const ArgumentSpec& a) { return std::ranges::count(a.axes, "M") > 0; });
    const LawShape shape{!by_norms ? 30 : writes ? 2 : 4, 2, 8, 6, by_norms ? 2 : 5};
    // Twice: few gates have few gradients, one of which has to be off by so much.
    for (const char* decay : {"none", "near-one", "logsigmoid", "none", "near-one", "logsigmoid"})
      for (const Fp32Check& check : law.fp32(decay, shape, seed++, 0x1p-10))
        if (!check.exact) outside[check.output] += check.outside;
    EXPECT_FALSE(outside.empty()) << law.name;
    for (const auto& [output, count] : outside) EXPECT_GT(count, 0) << law.name << " " << output;
  }
}

}  // namespace bound_law_test
}  // namespace assay
