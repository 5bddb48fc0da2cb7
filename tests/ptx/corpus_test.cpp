// Programs of ours as nvcc compiles them, with and without optimisation and -use_fast_math: every form
// decodes and runs, and the words are the host's.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/code.h"
#include "src/base/vm/machine.h"
#include "tests/ptx/corpus_programs.h"
#include "tests/ptx/single_entries.h"

namespace assay::corpus {
namespace {

const Variant& variant_named(std::string_view name) {
  for (const Variant& variant : variants())
    if (variant.name == name) return variant;
  throw BadInput("the corpus was not compiled as " + std::string(name));
}

struct Decoded {
  std::shared_ptr<const ptx::Module> module;
  std::set<std::string> ready;                 ///< entries that decode
  std::map<std::string, std::string> lacking;  ///< entry -> what was said
};

const Decoded& decoded(const Variant& variant) {
  static std::map<std::string, Decoded> known;
  Decoded& made = known[variant.name];
  if (made.module) return made;
  made.module = std::make_shared<const ptx::Module>(ptx::parse(*variant.text, variant.name + ".ptx"));
  for (const ptx::Function& function : made.module->functions) {
    if (!function.entry) continue;
    try {
      vm::decode(made.module, function.name);
      made.ready.insert(function.name);
    } catch (const BadInput& error) {
      made.lacking[function.name] = error.what();
    }
  }
  return made;
}

/// The text of one entry: a run reads the whole module that it is given.
std::shared_ptr<const std::string> text_of(const Variant& variant, const std::string& entry) {
  static std::map<std::string, std::map<std::string, std::shared_ptr<const std::string>>> known;
  auto& texts = known[variant.name];
  if (texts.empty())
    for (ptx::SingleEntry& made : ptx::single_entries(*variant.text))
      texts[made.name] = std::make_shared<const std::string>(std::move(made.text));
  return texts.at(entry);
}

Outcome run_program(const Variant& variant, const Listed& program, const Inputs& inputs) {
  TensorMap tensors;
  const Program plan = plan_of(program.name, text_of(variant, program.name), inputs, tensors);
  return vm::run(plan, tensors, {"sm_90", 1, uint64_t{1} << 22});
}

TEST(Corpus, HasSixtyProgramsAndAnEntryForEach) {
  EXPECT_GE(all_programs().size(), 60u);
  for (const Variant& variant : variants())
    for (const Listed& program : all_programs())
      EXPECT_TRUE(decoded(variant).ready.contains(program.name) ||
                  decoded(variant).lacking.contains(program.name))
          << program.name << " is no entry of " << variant.name;
}

TEST(Corpus, DecodesEveryProgram) {
  for (const Variant& variant : variants())
    for (const auto& [name, message] : decoded(variant).lacking)
      ADD_FAILURE() << variant.name << ": " << message;
}

/// At most three wrong words of a program.
void expect_words(const Variant& variant, const Listed& program, const Inputs& inputs, const Tensor& got) {
  const std::vector<unsigned long long> expected = expected_words(program, inputs);
  int wrong = 0;
  for (size_t t = 0; t < expected.size() && wrong < 3; ++t) {
    const auto word = static_cast<unsigned long long>(got.bits(static_cast<int64_t>(t)));
    // The host's own rounding to the format adds half an ulp.
    const bool good = program.ulps == 0 ? word == expected[t]
                                        : ulps_between(program, word, expected[t]) <= program.ulps + 0.5;
    wrong += !good;
    EXPECT_TRUE(good) << program.name << " in " << variant.name << ", thread " << t << ": " << std::hex
                      << word << ", the host has " << expected[t] << " (a " << inputs.a[t] << ", b "
                      << inputs.b[t] << ", c " << inputs.c[t] << ")";
  }
}

class CorpusRun : public testing::TestWithParam<const char*> {};

TEST_P(CorpusRun, GivesTheHostsWords) {
  const Variant& variant = variant_named(GetParam());
  size_t exact = 0, bounded = 0;
  for (const Listed& program : all_programs()) {
    if (!decoded(variant).ready.contains(program.name)) continue;
    const Inputs inputs = inputs_of(program);
    const Outcome outcome = run_program(variant, program, inputs);
    ASSERT_FALSE(outcome.trap) << program.name << ": " << outcome.trap->message;
    if (program.ulps < 0 || (program.is_float && variant.fast_math)) continue;
    ++(program.ulps == 0 ? exact : bounded);
    expect_words(variant, program, inputs, outcome.outputs.at("d"));
  }
  EXPECT_GE(exact, variant.fast_math ? 45u : 120u);
  if (!variant.fast_math) {
    EXPECT_GE(bounded, 30u);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, CorpusRun, testing::Values("O3", "O3_fast_math", "O0_G", "O0_G_fast_math"),
                         [](const auto& variant) { return variant.param; });

}  // namespace
}  // namespace assay::corpus
