// Two precisions of the same evaluation overlap, for every operator.
#include <gtest/gtest.h>

#include "reference/operator.h"
#include "tests/laws/operator_laws.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace precision_test {

/// Elements whose enclosures do not meet.
int64_t apart(const ReferenceResult& a, const ReferenceResult& b) {
  int64_t count = 0;
  for (size_t o = 0; o < a.outputs.size(); ++o) {
    const ReferenceOutput &x = a.outputs[o], &y = b.outputs[o];
    for (size_t i = 0; i < x.mid.size(); ++i)
      count += !(std::fabs(x.mid[i] - y.mid[i]) <= (x.rad[i] + y.rad[i]) * (1 + 1e-12));
  }
  return count;
}

TEST(Precision, of_double_and_of_double_double_give_enclosures_that_meet_for_every_operator) {
  for (const Operator& op : operators()) {
    uint64_t seed = first_seed(op.name);
    for (const char* decay : {"absent", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"}) {
      RandomShape shape;
      shape.B = 2, shape.T = 90, shape.H = 2, shape.K = 6, shape.V = 19, shape.decay = decay;
      RandomProblem p;
      draw_problem_of(op, decay, shape, seed++, p);
      p.problem.arithmetic = recurrent_fp32(shape.K);
      const ReferenceResult coarse = op.evaluate(p.problem);
      Arithmetic& a = p.problem.arithmetic;
      a = {};
      a.write = a.step = a.readout = a.divide = a.logits = 0x1p-42;
      const ReferenceResult fine = op.evaluate(p.problem);
      EXPECT_EQ(apart(coarse, fine), 0) << op.name << " " << decay;
      // Without g the slots' decays have no declared arithmetic.
      if (op.name == "gsa" && std::string(decay) == "absent") continue;
      // States of rwkv7 with removals drawn at random leave the range of fp32, and delta rules start in
      // double-double.
      if (removes_from_state(op)) continue;
      // A few operations are precise enough in double.
      const bool climbs = op.outputs.size() > 1;
      for (const ReferenceOutput& out : fine.outputs) EXPECT_TRUE(out.undecided.empty()) << out.undecided;
      if (!climbs) continue;
      int64_t narrower = 0;
      for (size_t o = 0; o < coarse.outputs.size(); ++o) {
        EXPECT_EQ(coarse.outputs[o].rung, 0) << op.name << " " << decay;
        EXPECT_GE(fine.outputs[o].rung, 1) << op.name << " " << decay;
        for (size_t i = 0; i < coarse.outputs[o].mid.size(); ++i)
          narrower += fine.outputs[o].rad[i] < coarse.outputs[o].rad[i] / 2;
      }
      EXPECT_GT(narrower, 0) << op.name << " " << decay;
    }
  }
}

}  // namespace precision_test
}  // namespace assay
