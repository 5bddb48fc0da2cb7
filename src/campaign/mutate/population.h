// The mutants there are of what a set of runs launches, and a sample of them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/mutation/mutation.h"
#include "src/campaign/mutate/clean_case.h"

namespace assay {

struct PossibleMutant {
  int32_t module = -1;  ///< into Population::modules
  ptx::Mutation mutation;
};

struct MutatedModule {
  std::string name, path;
  std::shared_ptr<const std::string> text;
  std::unique_ptr<ptx::MutableText> program;
};

/// All that change one source line by one operator: loops unrolled, templates and formats make many of one.
struct MutationPlace {
  std::string key;  ///< "file:line operator"
  std::vector<PossibleMutant> mutants;
};

/// Of an instruction that has no line of its own, as the compiler makes some: that of the one before it.
SourceLocation place_of(const ptx::Module&, int32_t function, int32_t instruction);

/// "FILE:LINE (why)" of the first two of these instructions' lines, and how many more lines there are.
std::string lines_of(const ptx::Module&, int32_t function, const std::vector<int32_t>& instructions,
                     const std::function<std::string(const ptx::Instruction&)>& why);

class Population {
 public:
  /// Of the modules and functions that these cases launch.
  Population(const std::vector<CleanCase>&, int threads);

  const std::vector<MutatedModule>& modules() const { return modules_; }
  const std::vector<MutationPlace>& places() const { return places_; }
  int64_t possible() const;
  int64_t instructions() const { return instructions_; }
  int64_t instructions_reached() const { return reached_; }

  /// All of them: every place once, in an order that `seed` decides, then another mutant of each, and so on.
  std::vector<PossibleMutant> sequence(uint64_t seed) const;

 private:
  std::vector<MutatedModule> modules_;
  std::vector<MutationPlace> places_;
  int64_t instructions_ = 0, reached_ = 0;
};

}  // namespace assay
