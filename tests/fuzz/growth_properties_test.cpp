// A state that leaves its format is seen by a long run with one key, and by nothing else asked of it.
#include <cmath>

#include "tests/fuzz/property_twins.h"

namespace assay {
namespace {

/// A machine on which a state of so many tokens has left fp32, unless each has a key of its own.
class GrowingBackend : public Backend {
 public:
  explicit GrowingBackend(bool grows) : grows_(grows) {
    BackendOptions machine;
    machine.threads = 1;
    machine_ = make_vm_backend(machine);
  }
  std::string name() const override { return machine_->name(); }
  Outcome run(const Program& program, const TensorMap& inputs) override {
    const Tensor& k = inputs.contains("a") ? inputs.at("a") : inputs.at("k");  // what it reads with
    const int64_t T = k.axes[1].size;
    Outcome outcome = machine_->run(program, inputs);
    const bool same = k.value(0) == k.value(k.size() / T * 4000 % k.size());
    if (grows_ && T > 4000 && same) outcome.outputs.at("o").set(outcome.outputs.at("o").size() - 1, INFINITY);
    return outcome;
  }

 private:
  const bool grows_;
  std::unique_ptr<Backend> machine_;
};

TEST(GrowthProperties, AKeyAtThousandsOfTokensShowsAStateThatGrows) {
  const Property* property = &find_property("repeats-stay-finite");
  for (const char* token : {"delta_rule.fused_recurrent/B1/T20/H1/K8/V8/bf16/g-fp32/none/s3",
                            "kda.fused_recurrent/B2/T70/H1/HV2/K40/V24/bf16/g-fp32/logsigmoid/s4/h0",
                            "rwkv7.fused_recurrent/B1/T20/H1/K8/V8/fp16/g-fp32/mild/s5"}) {
    const Case c = parse_token(token);
    const Kernel& kernel = find_kernel(c.kernel);
    Verification v;
    v.case_ = c, v.verdict = Verdict::pass;
    for (const bool grows : {false, true}) {
      GrowingBackend backend(grows);
      const auto outcomes = check_properties(v, kernel, backend, {property});
      ASSERT_EQ(outcomes.size(), 1u) << token;
      ASSERT_EQ(outcomes[0].failure.has_value(), grows) << token << ": " << outcomes[0].failure.value_or("");
      if (!grows) continue;
      EXPECT_NE(outcomes[0].failure->find("8192 tokens with the same key"), std::string::npos)
          << *outcomes[0].failure;
      EXPECT_NE(outcomes[0].failure->find("o["), std::string::npos) << *outcomes[0].failure;
      ASSERT_EQ(outcomes[0].derived.size(), 1u);
      EXPECT_EQ(outcomes[0].derived[0].case_.T, 64);
    }
  }
  EXPECT_FALSE(test::applies(property->name.data(), "gla.subject/B1/T20/H1/K4/V3/fp32/g-fp32/mild/s3",
                             test::subject_kernel()));
}

}  // namespace
}  // namespace assay
