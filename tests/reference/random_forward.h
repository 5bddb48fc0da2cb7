// A problem of gla as the parts of the forward evaluation see it.
#pragma once
#include "reference/forward_problem.h"
#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "tests/reference/random_problem.h"

namespace assay {

class RandomForward {
 public:
  /// `error`: declared of readout, write and step.
  explicit RandomForward(const RandomShape& shape, double error = 0x1p-24) {
    draw_problem(shape, 3, random_);
    random_.problem.arithmetic.readout = random_.problem.arithmetic.write = random_.problem.arithmetic.step =
        error;
    const Sizes& s = random_.problem.sizes;
    for (auto* field : {&o.mid, &o.rad, &o.bound, &o.companion, &o.underflow})
      field->assign(static_cast<size_t>(s.B * s.T * s.H * s.V), 0);
    for (auto* field : {&state.mid, &state.rad, &state.bound, &state.companion, &state.underflow})
      field->assign(static_cast<size_t>(s.N * s.H * s.K * s.V), 0);
    tensors_.emplace(random_.problem, Gla::form());
    problem_.emplace(ForwardProblem{random_.problem,
                                    row_,
                                    *tensors_,
                                    BoundModel(random_.problem.arithmetic),
                                    {},
                                    false,
                                    o,
                                    state,
                                    mutex_});
  }
  const ForwardProblem& problem() const { return *problem_; }

  /// The slice by its transcription in double.
  Gla::Outputs<double> literal(const Slice& slice) const {
    const Sizes& s = random_.problem.sizes;
    const auto rows = [&](const char* name, int64_t width) {
      std::vector<double> x(static_cast<size_t>(slice.tokens * width));
      decode_rows(random_.inputs.at(name), slice.first_row, slice.tokens, s.H, slice.h, width, x.data());
      return to_matrix<double>(x.data(), slice.tokens, width);
    };
    std::vector<double> S0(static_cast<size_t>(s.K * s.V));
    decode_run(random_.inputs.at("initial_state"), problem_->state_row(slice, 0), s.K * s.V, S0.data());
    return Gla::forward(Gla::Inputs<double>{rows("q", s.K), rows("k", s.K), rows("v", s.V), rows("g", s.K),
                                            to_matrix<double>(S0.data(), s.K, s.V), random_.problem.scale});
  }

  ReferenceOutput o, state;

 private:
  RandomProblem random_;
  std::mutex mutex_;
  const GatedRow row_{Gla::form(), &find_operator("gla").parameters, &literal_column<Gla>};
  std::optional<GatedTensors> tensors_;
  std::optional<ForwardProblem> problem_;
};

}  // namespace assay
