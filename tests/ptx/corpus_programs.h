// The corpus as the test sees it: programs, their inputs and the words the host expects.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"
#include "tests/ptx/corpus/listed.h"

namespace assay::corpus {

/// One way of compiling the corpus; the PTX text stands in the build folder.
struct Variant {
  std::string name;  ///< "O3", "O3_fast_math", "O0_G", "O0_G_fast_math"
  bool fast_math = false;
  std::shared_ptr<const std::string> text;
};
const std::vector<Variant>& variants();

/// Every program of tests/ptx/corpus/*.cu.
const std::vector<Listed>& all_programs();
/// a, b and c of all threads, in the domain of the program. Deterministic.
Inputs inputs_of(const Listed&);
/// One launch of an entry of `text` over a, b and c; its words are output d.
Program plan_of(const std::string& entry, std::shared_ptr<const std::string> text, const Inputs&,
                TensorMap& tensors);
/// What the host computes for every thread.
std::vector<unsigned long long> expected_words(const Listed&, const Inputs&);
/// |got - expected| in units of the last place of `expected` (f32 if the program's name ends so, else f64); 0
/// for equal infinities and for two NaN.
double ulps_between(const Listed&, unsigned long long got, unsigned long long expected);

}  // namespace assay::corpus
