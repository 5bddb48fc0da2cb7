// Where an argument's part of a slice lies, for every kind of argument.
#include "reference/slice_problem.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

const Sizes kSizes{.B = 2, .T = 5, .H = 2, .HV = 6, .K = 3, .V = 4, .M = 7, .N = 2};

struct Place {
  const char* what;
  ArgumentSpec argument;
  bool per_head;
  int64_t rows, columns, first, shared;  ///< `first`: of row 1 (or 0) of sequence 1, head 4 of 6
};

TEST(SliceLayout, places_tokens_states_and_shared_arguments) {
  const Slice s{1, 4, 5, 5};
  const Place places[] = {
      {"token and query head", {"q", {"B", "T", "HQ", "K"}, Role::value}, true, 5, 3, (6 * 6 + 4) * 3, false},
      {"token and key head, three queries each",
       {"k", {"B", "T", "H", "K"}, Role::value},
       true,
       5,
       3,
       (6 * 2 + 1) * 3,
       true},
      {"one number per token", {"g", {"B", "T", "HQ"}, Role::log_decay}, true, 5, 1, 6 * 6 + 4, false},
      {"keys of a token's seven writes",
       {"k", {"B", "T", "M", "H", "K"}, Role::value},
       true,
       5,
       21,
       (6 * 7 * 2 + 1) * 3,
       true},
      {"a state", {"S", {"N", "HV", "K", "V"}, Role::state}, true, 3, 4, ((1 * 6 + 4) * 3 + 1) * 4, false},
      {"a row of a state", {"z", {"N", "HV", "K"}, Role::state}, true, 1, 3, (1 * 6 + 4) * 3, false},
      {"one number per head", {"A", {"HV"}, Role::value}, true, 1, 1, 4, true},
      {"one row per head", {"u", {"HV", "K"}, Role::value}, true, 1, 3, 12, true},
      {"heads as columns", {"x", {"B", "T", "H", "V"}, Role::value}, false, 5, 8, 6 * 8, false},
      {"a matrix of weights", {"W", {"H*V", "K"}, Role::value}, false, 8, 3, 3, true},
  };
  for (const Place& place : places) {
    const SliceLayout layout(place.argument, kSizes, place.per_head);
    const int64_t heads = place.per_head ? 6 : 1;
    const Slice slice = place.per_head ? s : Slice{1, 0, 5, 5};
    EXPECT_EQ(layout.rows(slice), place.rows) << place.what;
    EXPECT_EQ(layout.columns(), place.columns) << place.what;
    EXPECT_EQ(layout.row(slice, heads, place.rows > 1 ? 1 : 0), place.first) << place.what;
    EXPECT_EQ(layout.shared(heads), place.shared) << place.what;
    const bool writes = layout.parts() > 1;
    EXPECT_EQ(layout.parts(), writes ? kSizes.M : 1) << place.what;
    EXPECT_EQ(layout.row(slice, heads, 1, layout.parts() - 1) - layout.row(slice, heads, 1),
              writes ? 6 * 2 * 3 : 0)
        << place.what;
  }
}

TEST(SliceProblem, reads_absent_optional_arguments_as_zeros_and_names_a_missing_one) {
  Problem p;
  p.sizes = {.B = 1, .T = 2, .H = 1, .HV = 1, .K = 2, .V = 1, .M = 1, .N = 1};
  TensorMap inputs;
  Tensor q("q", Dtype::fp32, {{"B", 1}, {"T", 2}, {"H", 1}, {"K", 2}});
  for (int64_t i = 0; i < 4; ++i) q.set(i, static_cast<double>(i + 1));
  inputs["q"] = q;
  p.inputs = &inputs;
  const std::vector<ArgumentSpec> specs = {{"q", {"B", "T", "H", "K"}, Role::value},
                                           {"g", {"B", "T", "H", "K"}, Role::log_decay, true}};
  const std::vector<ParameterSpec> parameters = {{"layers", 3, ""}};
  const SliceProblem x = read_slice(p, specs, {}, parameters, Slice{0, 0, 0, 2}, true);
  EXPECT_EQ(x.inputs[0].values, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_TRUE(x.inputs[0].present);
  EXPECT_EQ(x.inputs[1].values, std::vector<double>(4, 0));
  EXPECT_FALSE(x.inputs[1].present);
  EXPECT_EQ(x.parameter("layers"), 3);
  p.parameters["layers"] = 5;
  EXPECT_EQ(x.parameter("layers"), 5);
  EXPECT_THROW(x.parameter("depth"), BadInput);
  inputs.erase("q");
  EXPECT_THROW(read_slice(p, specs, {}, parameters, Slice{0, 0, 0, 2}, true), BadInput);
}

}  // namespace
}  // namespace assay
