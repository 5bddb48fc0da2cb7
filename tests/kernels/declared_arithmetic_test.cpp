#include "kernels/declared_arithmetic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

const ExpressionScope kScope{{{"K", 64}, {"u", 0x1p-8}}, {}};

Arithmetic declared(const std::string& arithmetic) {
  const std::string text = R"({"operator": "gla", "dtypes": ["bf16"], "arithmetic": )" + arithmetic +
                           R"(, "launches": [{"function": "f", "grid": 1, "block": 1, "arguments": []}]})";
  return declared_arithmetic(parse_plan_document(text, "p.json"), kScope);
}

TEST(DeclaredArithmetic, PresetFollowsFromTheRoundingsOfAnFp32Recurrence) {
  const Arithmetic a = declared(R"("fp32-recurrent")");
  const double u = 0x1p-24;
  EXPECT_EQ(a.step, u);
  EXPECT_EQ(a.write, u);
  EXPECT_GE(a.decay, (1 + 0x1p-22) * (1 + u) - 1);
  EXPECT_LE(a.decay, 0x1.41p-22);
  EXPECT_GE(a.decay_per_nat, (1 + u) * (1 + u) - 1);
  EXPECT_GE(a.readout, static_cast<double>(std::pow(1 + static_cast<long double>(u), 66.0L) - 1));
  EXPECT_LE(a.readout, 66 * u * (1 + 0x1p-16));
  EXPECT_EQ(a.underflow, 0x1p-126);
  EXPECT_EQ(a.output_roundoff, 0x1p-8);
  EXPECT_EQ(a.chunk, 0);
}

/// dv is a sum over 64 keys, dq one over 32 values.
TEST(DeclaredArithmetic, GradientsMirrorTheForwardNumbersWhereNothingIsWritten) {
  const ExpressionScope scope{
      {{"B", 2}, {"T", 100}, {"K", 64}, {"V", 32}, {"u", 0x1p-8}, {"u_gate", 0x1p-24}}, {}};
  const auto gradients = [&](const std::string& arithmetic) {
    const std::string text =
        R"({"operator": "gla", "dtypes": ["bf16"], "arithmetic": )" + arithmetic +
        R"(, "backward_launches": [{"function": "f", "grid": 1, "block": 1, "arguments": []}]})";
    return declared_adjoint_arithmetic(parse_plan_document(text, "p.json"), scope);
  };
  const double u = 0x1p-24;
  const auto is_gamma = [&](double value, double n) {
    EXPECT_GE(value, n * u) << n;
    EXPECT_LE(value, n * u * (1 + 0x1p-14)) << n;
  };
  const AdjointArithmetic recurrent = gradients(R"("fp32-recurrent")");
  EXPECT_EQ(recurrent.state.write, u);
  is_gamma(recurrent.adjoint.write, 3), is_gamma(recurrent.state.readout, 34);
  is_gamma(recurrent.adjoint.readout, 32), is_gamma(recurrent.value_readout, 64);
  is_gamma(recurrent.gate_readout, 33), is_gamma(recurrent.total, 200);
  EXPECT_EQ(recurrent.gate_output_roundoff, u);

  const AdjointArithmetic written =
      gradients(R"({"output_roundoff": "u", "step": "2^-20", "readout": "2^-18", "backward":)"
                R"( {"state": {"step": "2^-21"}, "adjoint": {"step": "2^-22"}, "gate_sums": "2^-7"}})");
  EXPECT_EQ(written.state.step, 0x1p-21);
  EXPECT_EQ(written.adjoint.step, 0x1p-22);
  EXPECT_EQ(written.gate_sums, 0x1p-7);
  EXPECT_EQ(written.value_readout, 0x1p-18);
}

TEST(DeclaredArithmetic, FieldsAreExpressionsAndOverrideThePreset) {
  const Arithmetic a =
      declared(R"({"preset": "fp32-recurrent", "step": "2^-9", "chunk": 64, "boundary": "2^-24"})");
  EXPECT_EQ(a.step, 0x1p-9);
  EXPECT_EQ(a.chunk, 64);
  EXPECT_EQ(a.boundary, 0x1p-24);
  EXPECT_EQ(a.write, 0x1p-24);
  EXPECT_EQ(declared(R"({"readout": "(K + 2) * 2^-24", "output_roundoff": "u"})").readout, 66 * 0x1p-24);
}

TEST(DeclaredArithmetic, DeltaRulesInChunksRoundOperandsOrCutThemToTf32) {
  const auto preset = [](const char* name, double u) {
    const std::string text = R"({"operator": "kda", "dtypes": ["bf16"], "arithmetic": ")" +
                             std::string(name) +
                             R"(", "launches": [{"function": "f", "grid": 1, "block": 1, "arguments": []}]})";
    const ExpressionScope scope{{{"K", 64}, {"V", 64}, {"u", u}, {"u_gate", 0x1p-24}}, {}};
    return declared_adjoint_arithmetic(parse_plan_document(text, "p.json"), scope);
  };
  const auto is_about = [](double value, double expected) {
    EXPECT_GE(value, expected);
    EXPECT_LE(value, expected + 0x1p-12);
  };
  is_about(preset("triton-delta-chunk", 0x1p-8).gate_sums, 9 * 0x1p-8);
  is_about(preset("triton-kda-chunk", 0x1p-8).gate_sums, 11 * 0x1p-8);
  is_about(preset("triton-delta-chunk", 0x1p-24).gate_sums, 10 * 0x1p-10);
  const AdjointArithmetic a = preset("triton-delta-chunk", 0x1p-8);
  is_about(a.state.removal, 3 * 0x1p-8), is_about(a.state.solve, 0x1p-8);
  EXPECT_EQ(a.state.solve_tokens, 0);
  EXPECT_EQ(a.state.chunk, 64);
}

TEST(DeclaredArithmetic, SlotsInChunksAreJudgedByWhatBothPassesRound) {
  const auto preset = [](double u) {
    const std::string text = R"({"operator": "gsa", "dtypes": ["bf16"], "arithmetic": "triton-gsa-chunk",)"
                             R"( "launches": [{"function": "f", "grid": 1, "block": 1, "arguments": []}]})";
    const ExpressionScope scope{{{"K", 64}, {"V", 64}, {"M", 64}, {"u", u}, {"u_gate", 0x1p-24}}, {}};
    return declared_adjoint_arithmetic(parse_plan_document(text, "p.json"), scope);
  };
  const AdjointArithmetic half = preset(0x1p-8), full = preset(0x1p-24);
  EXPECT_NEAR(half.state.logits, 4 * 0x1p-8, 0x1p-12);
  EXPECT_NEAR(full.state.logits, 4 * 0x1p-10, 0x1p-12);
  EXPECT_NEAR(half.state.divide, 0x1p-8, 0x1p-15);
  EXPECT_NEAR(full.state.divide, 0, 0x1p-15);
  EXPECT_EQ(half.state.prefix_per_nat, 70 * 0x1p-24);
}

TEST(DeclaredArithmetic, MistakesAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("fp32")", "at /arithmetic: no arithmetic preset is called \"fp32\"; there are: fp32-recurrent"},
      {R"({"preset": "fp32-recurrent", "roundoff": 1})",
       "unknown field \"roundoff\"; known here: preset, decay, decay_per_nat"},
      {R"({"step": "2^-9"})", "output_roundoff must be written"},
      {R"({"output_roundoff": "-u"})", "at /arithmetic/output_roundoff: \"-u\" = -0.00390625"},
      {R"({"output_roundoff": "1/0"})", "an error is finite and at least 0"},
      {R"({"output_roundoff": "0/0"})", "an error is finite and at least 0"},
      {R"({"output_roundoff": "u", "chunk": 0.5})",
       "at /arithmetic/chunk: \"0.5\" = 0.5 is not a whole number"},
  };
  for (const auto& [text, part] : rows) {
    try {
      declared(text);
      ADD_FAILURE() << text;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(DeclaredArithmetic, EveryNumberOfTheTableCanBeDeclaredAndIsKept) {
  for (const auto& field : kArithmeticFields) {
    const std::string name(field.name);
    const std::string required = name == "output_roundoff" ? "" : R"("output_roundoff": "u", )";
    const Arithmetic a = declared("{" + required + "\"" + name + "\": 3}");
    for (const auto& other : kArithmeticFields) {
      const double expected = &other == &field ? 3 : (other.name == "output_roundoff" ? 0x1p-8 : 0);
      const auto expect = [&](auto member) { EXPECT_EQ(static_cast<double>(a.*member), expected) << name; };
      std::visit(expect, other.member);
    }
  }
}

/// A row of a table in Markdown, where "|" parts cells.
template <class Field>
std::string row_of(const Field& field) {
  std::string cell(field.covers);
  for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
  return fmt::format("| {} | {} | {} | {} |\n", field.name, field.family, name_of(field.unit), cell);
}

template <class Field>
nlohmann::ordered_json property_of(const Field& field) {
  return {{"$ref", "#/$defs/expression"},
          {"description", fmt::format("{}: {}", name_of(field.unit), field.covers)}};
}

TEST(DeclaredArithmetic, SchemaAndReadmeHaveTheTables) {
  nlohmann::ordered_json forward{
      {"preset",
       {{"enum",
         {"fp32-recurrent", "triton-chunk", "triton-delta-chunk", "triton-kda-chunk", "triton-gsa-chunk"}}}}};
  std::string table, of_gradients;
  for (const auto& field : kArithmeticFields) {
    forward[std::string(field.name)] = property_of(field);
    table += row_of(field);
  }
  forward["backward"] = {{"$ref", "#/$defs/backward_arithmetic"}};
  std::ifstream schema_file(ASSAY_SOURCE_DIR "/kernels/plan.schema.json");
  const auto schema = nlohmann::ordered_json::parse(schema_file);
  EXPECT_EQ(schema["properties"]["arithmetic"]["oneOf"][1]["properties"].dump(1), forward.dump(1));

  auto backward = schema["$defs"]["backward_arithmetic"]["properties"];
  EXPECT_EQ(backward.erase("state") + backward.erase("adjoint"), 2u);
  nlohmann::ordered_json expected;
  for (const auto& field : kAdjointFields) {
    expected[std::string(field.name)] = property_of(field);
    of_gradients += row_of(field);
  }
  EXPECT_EQ(backward.dump(1), expected.dump(1));

  std::ifstream file(ASSAY_SOURCE_DIR "/examples/strangers_gla/README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(readme.find("|---|---|---|---|\n" + table + "\n"), std::string::npos) << table;
  EXPECT_NE(readme.find("|---|---|---|---|\n" + of_gradients + "\n"), std::string::npos) << of_gradients;
}

}  // namespace
}  // namespace assay
