// What every operator's transcription must obey: <w, J d> = <J^T w, d> against dual numbers, and a run split
// and resumed is the whole run, forward and backward.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/operator.h"
#include "tests/laws/operator_laws.h"

namespace assay {
namespace adjoint_test {

const char* const kDecays[] = {"absent", "none",  "near-one", "logsigmoid",
                               "strong", "reset", "ladder",   "extreme"};
/// Intervals hold the exact numbers, so there is no tolerance; but they must be narrow enough to tell: of
/// inputs of order 1, no difference that fp64 could see hides in one.
constexpr double kResolution = 0x1p-53;

const LawShape kShapes[] = {{1, 1, 1, 1, 1}, {7, 2, 3, 2, 2}, {20, 3, 2, 5, 3}};

TEST(Adjoint, agrees_with_dual_numbers_for_every_operator_input_and_decay) {
  EXPECT_EQ(operator_laws().size(), operators().size());
  for (const OperatorLaws& law : operator_laws()) {
    uint64_t seed = first_seed(law.name);
    for (const char* decay : kDecays)
      for (const LawShape& shape : kShapes)
        for (const AdjointCheck& check : law.adjoint(decay, shape, seed++)) {
          const Ball<double>& off = check.disagreement;
          EXPECT_LE(std::abs(off.mid), off.rad)
              << law.name << " " << decay << " " << check.moved << " T=" << shape.T << " seed " << seed - 1;
          EXPECT_LE(off.rad, kResolution) << law.name << " " << decay << " " << check.moved;
          const std::string name = decay;
          // The ladder's rungs reach 2^14 nats: its first token may forget the initial state.
          const bool forgotten = name == "extreme" || name == "reset" || name == "strong" ||
                                 (name == "ladder" && check.moved == "initial_state");
          if (!check.may_vanish && shape.T > 1 && !forgotten) {
            EXPECT_NE(check.forward, 0) << law.name << " " << decay << " " << check.moved;
          }
        }
  }
}

TEST(Adjoint, and_outputs_of_a_run_split_and_resumed_are_those_of_the_whole_run) {
  for (const OperatorLaws& law : operator_laws()) {
    uint64_t seed = first_seed(law.name);
    for (const char* decay : kDecays)
      for (const LawShape& shape : {LawShape{7, 2, 3, 2, 2}, {20, 3, 2, 5, 3}}) {
        // Without g the slots' decays depend on all tokens so far, which the states do not hold.
        if (law.name == "gsa" && decay == std::string("absent")) continue;
        const ResumedCheck check = law.resumed(decay, shape, seed++);
        EXPECT_TRUE(check.all_hold_zero) << law.name << " " << decay;
        EXPECT_LE(check.widest, kResolution) << law.name << " " << decay;
      }
  }
}

}  // namespace adjoint_test
}  // namespace assay
