#include "src/case/parameters.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

template <typename Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

Case with(std::map<std::string, double> parameters, const char* kernel = "lightning_attn.chunk") {
  Case c;
  c.kernel = kernel, c.decay = "none";
  c.parameters = std::move(parameters);
  return c;
}

TEST(Parameters, ComeBackFromTheirText) {
  for (const std::map<std::string, double>& parameters :
       {std::map<std::string, double>{}, {{"layer_idx", 3}}, {{"a", -0.1}, {"b", 1e300}, {"c", 0x1p-1074}}})
    EXPECT_EQ(parse_parameters(parameters_text(parameters)), parameters);
  EXPECT_EQ(parameters_text({{"num_layers", 12}, {"layer_idx", 3}}), "layer_idx=3,num_layers=12");
}

TEST(Parameters, ThatAreNoneAreRefused) {
  for (const char* text :
       {"layer_idx", "=3", "layer_idx=", "layer_idx=x", "layer_idx=1e999", "layer_idx=inf", "a=1,,b=2"})
    EXPECT_NE(refusal([&] { parse_parameters(text); }).find("write it as layer_idx=3"), std::string::npos)
        << text;
  EXPECT_EQ(refusal([] { parse_parameters("a=1,a=2"); }), "parameter a: given twice");
}

TEST(Parameters, HaveTheOperatorsDefaultWhereTheCaseGivesNone) {
  const Operator& op = find_operator("lightning_attn");
  EXPECT_EQ(parameter_of(with({}), op, "num_layers"), 1);
  EXPECT_EQ(parameter_of(with({{"num_layers", 12}}), op, "num_layers"), 12);
}

TEST(Parameters, OutsideTheirDomainAreRefusedWithWhatTheyMayBe) {
  const Operator& op = find_operator("lightning_attn");
  const struct {
    std::map<std::string, double> parameters;
    const char* message;
  } rows[] = {
      {{{"num_layers", 0}}, "parameter num_layers = 0: must be a whole number of at least 1"},
      {{{"layer_idx", -1}}, "parameter layer_idx = -1: must be a whole number of at least 0"},
      {{{"layer_idx", 0.5}, {"num_layers", 2}},
       "parameter layer_idx = 0.5: must be a whole number of at least 0"},
      {{{"layer_idx", 3}, {"num_layers", 2}}, "parameter layer_idx = 3: must be at most num_layers = 2"},
      {{{"layer_ix", 3}}, "unknown parameter of lightning_attn 'layer_ix': did you mean 'layer_idx'?"},
  };
  for (const auto& row : rows) EXPECT_EQ(refusal([&] { validate(with(row.parameters), op); }), row.message);
  EXPECT_EQ(refusal([] {
              validate(with({{"layer_idx", 1}}, "gla.chunk"), find_operator("gla"));
            }),
            "parameter layer_idx: gla has none; leave it out");
  EXPECT_NO_THROW(validate(with({{"layer_idx", 2}, {"num_layers", 2}}), op));
}

TEST(Parameters, OfAnOperatorHaveDefaultsInTheirDomain) {
  for (const Operator& op : operators()) EXPECT_NO_THROW(validate_parameters(Case{}, op)) << op.name;
}

}  // namespace
}  // namespace assay
