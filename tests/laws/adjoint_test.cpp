// What every operator's transcription must obey: <w, J d> = <J^T w, d> against dual numbers, and a run split
// and resumed is the whole run, forward and backward.
#include <gtest/gtest.h>

#include "reference/operator.h"
#include "tests/laws/operator_laws.h"

namespace assay {
namespace {

const char* const kDecays[] = {"absent", "none",  "near-one", "logsigmoid",
                               "strong", "reset", "ladder",   "extreme"};
const LawShape kShapes[] = {{1, 1, 1, 1, 1}, {7, 2, 3, 2, 2}, {20, 3, 2, 5, 3}};

TEST(Adjoint, agrees_with_dual_numbers_for_every_operator_input_and_decay) {
  EXPECT_EQ(operator_laws().size(), operators().size());
  uint64_t seed = 1;
  for (const OperatorLaws& law : operator_laws())
    for (const char* decay : kDecays)
      for (const LawShape& shape : kShapes)
        for (const AdjointCheck& check : law.adjoint(decay, shape, seed++)) {
          // 60 digits, fewer than 10^5 roundings, terms of at most 10^6 (rwkv7: 10^20 in growing states).
          const double allowed = law.name == "rwkv7" ? 1e-30 : 1e-48;
          EXPECT_LE(check.disagreement, allowed)
              << law.name << " " << decay << " " << check.moved << " T=" << shape.T << " seed " << seed - 1;
          const std::string name = decay;
          const bool forgotten = name == "extreme" || name == "reset" || name == "strong";
          if (!check.may_vanish && shape.T > 1 && !forgotten) {
            EXPECT_NE(check.forward, 0) << law.name << " " << decay << " " << check.moved;
          }
        }
}

TEST(Adjoint, and_outputs_of_a_run_split_and_resumed_are_those_of_the_whole_run) {
  uint64_t seed = 1;
  for (const OperatorLaws& law : operator_laws())
    for (const char* decay : kDecays)
      for (const LawShape& shape : {LawShape{7, 2, 3, 2, 2}, {20, 3, 2, 5, 3}}) {
        // Without g the slots' decays depend on all tokens so far, which the states do not hold.
        if (law.name == "gsa" && decay == std::string("absent")) continue;
        EXPECT_LE(law.resumed(decay, shape, seed++), law.name == "rwkv7" ? 1e-30 : 1e-48)
            << law.name << " " << decay;
      }
}

}  // namespace
}  // namespace assay
