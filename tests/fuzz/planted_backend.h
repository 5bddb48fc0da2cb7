// A kernel with one token's term wrong: the machine runs the real kernel on inputs changed at that token, the
// reference sees the inputs as they are. The same as a copy of the kernel that treats this one token wrongly.
#pragma once
#include <cmath>
#include <memory>
#include <string>

#include "src/base/backend/backend.h"

namespace assay::test {

class PlantedBackend : public Backend {
 public:
  /// `fault`: "term dropped", "decay one step late", "key scaled"; at token 17 of batch entry 0, in head 0.
  PlantedBackend(std::unique_ptr<Backend> machine, std::string fault)
      : machine_(std::move(machine)), fault_(std::move(fault)) {}
  std::string name() const override { return machine_->name() + ", " + fault_; }

  Outcome run(const Program& plan, const TensorMap& inputs) override {
    TensorMap changed = inputs;
    Tensor& k = changed.at("k");
    const int64_t T = k.axes[1].size, H = k.axes[2].size, K = k.axes[3].size;
    for (int64_t c = 0; c < K && T > kToken; ++c) {
      const int64_t at = kToken * H * K + c;
      k.set(at, k.value(at) * factor(inputs, at));
    }
    return machine_->run(plan, changed);
  }

 private:
  static constexpr int64_t kToken = 17;

  double factor(const TensorMap& inputs, int64_t at) const {
    if (fault_ == "term dropped") return 0;
    if (fault_ == "key scaled") return 1 + 0x1p-6;
    const auto g = inputs.find("g");
    return g == inputs.end() ? 1 : std::exp(g->second.value(at));
  }

  std::unique_ptr<Backend> machine_;
  std::string fault_;
};

}  // namespace assay::test
