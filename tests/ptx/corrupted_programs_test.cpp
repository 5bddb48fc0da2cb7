// Programs with wrong registers, numbers, opcodes, types, labels and lines: the machine refuses them, traps,
// hangs by its budget, or gives some result; nothing else ever happens. 500 programs, with --long 10,000; to
// be run with the sanitizers too. ASSAY_CORRUPTED=FIRST,COUNT in the environment picks some: each is drawn
// from its own number.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "kernels/kernel.h"
#include "reference/operator.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"
#include "tests/ptx/corpus_programs.h"
#include "tests/ptx/single_entries.h"
#include "tests/ptx/token_mutation.h"

namespace assay::corpus {
namespace {

struct Named {
  std::string name;
  Program plan;
  TensorMap inputs;
};

/// A few cases of our own kernels, and every program of the corpus, optimised and not.
const std::vector<Named>& whole_programs() {
  static const std::vector<Named> made = [] {
    std::vector<Named> programs;
    for (const Kernel& kernel : kernels()) {
      Case c;
      c.kernel = kernel.name;
      c.T = 19, c.K = 16, c.V = 16;
      if (kernel.limits.max_M > 0) c.M = std::min<int64_t>(16, kernel.limits.max_M);
      c.initial_state = true;
      const Operator& op = find_operator(kernel.operator_name);
      TensorMap inputs = draw_inputs(c, op);
      Program plan = kernel.plan(resolve_unchecked(c, op), inputs);
      programs.push_back({kernel.name, std::move(plan), std::move(inputs)});
    }
    for (const Variant& variant : variants()) {
      if (variant.fast_math) continue;
      for (ptx::SingleEntry& entry : ptx::single_entries(*variant.text))
        for (const Listed& program : all_programs()) {
          if (program.name != entry.name) continue;
          Named made_of{entry.name + " " + variant.name, {}, {}};
          made_of.plan = plan_of(entry.name, std::make_shared<std::string>(std::move(entry.text)),
                                 inputs_of(program), made_of.inputs);
          programs.push_back(std::move(made_of));
        }
    }
    return programs;
  }();
  return made;
}

/// One to three edits, mostly within functions.
std::string corrupted(const std::string& text, std::mt19937_64& random) {
  const size_t start = random() % 8 ? std::min(text.find("\n{"), text.size()) : 0;
  const std::string_view rest = std::string_view(text).substr(start);
  return text.substr(0, start) + ptx::mutate_tokens(rest, 1 + static_cast<int>(random() % 3), random);
}

/// "refused", "ended", or the kind of the trap.
std::string fate_of(Program plan, const TensorMap& inputs) {
  try {
    const Outcome outcome = vm::run(plan, inputs, {"sm_90", 1, uint64_t{1} << 14});
    return std::string(outcome.trap ? name_of(outcome.trap->kind) : "ended");
  } catch (const BadInput&) {
    return "refused";
  }
}

std::string fate_of_number(uint64_t number) {
  std::mt19937_64 random(number);
  const std::vector<Named>& all = whole_programs();
  const size_t kernels_first = kernels().size();
  const Named& program = random() % 10 ? all[kernels_first + random() % (all.size() - kernels_first)]
                                       : all[random() % kernels_first];
  Program plan = program.plan;
  for (Module& module : plan.modules)
    module.ptx = std::make_shared<std::string>(corrupted(*module.ptx, random));
  return fate_of(std::move(plan), program.inputs);
}

TEST(CorruptedPrograms, WholeProgramsEnd) {
  size_t ended = 0;
  for (const Named& program : whole_programs()) {
    const std::string fate = fate_of(program.plan, program.inputs);
    ended += fate == "ended";
    EXPECT_TRUE(fate == "ended" || fate == "refused" || fate == "hang" || fate == "unsupported")
        << program.name << ": " << fate;
  }
  EXPECT_GT(ended * 10, whole_programs().size() * 7);
}

TEST(CorruptedPrograms, AreRefusedTrapOrEnd) {
  uint64_t first = 0, count = 500;
  if (const char* scale = std::getenv("ASSAY_TEST_SCALE"); scale && std::atoi(scale) > 1)
    count = 1000 * static_cast<uint64_t>(std::atoi(scale));
  if (const char* some = std::getenv("ASSAY_CORRUPTED")) std::sscanf(some, "%lu,%lu", &first, &count);
  std::map<std::string, int> fates;
  for (uint64_t number = first; number < first + count; ++number) {
    if (number % 1000 == 0 && number > first) std::fprintf(stderr, "%lu programs\n", number);
    EXPECT_NO_THROW(++fates[fate_of_number(number)]) << "ASSAY_CORRUPTED=" << number << ",1";
  }
  for (const auto& [fate, times] : fates) std::fprintf(stderr, "%6d %s\n", times, fate.c_str());
  if (count < 500) return;
  for (const char* fate : {"refused", "ended", "out-of-bounds"}) EXPECT_GT(fates[fate], 0) << fate;
}

}  // namespace
}  // namespace assay::corpus
