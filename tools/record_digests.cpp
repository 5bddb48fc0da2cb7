// Records what a GPU computes for a seeded series of cases: one line "TOKEN DIGEST" each, to standard output.
// tests/laws/recorded_digest_test.cpp runs the same cases on the virtual machine and compares.
//   record_digests CASES SEED [KERNEL...] > tests/data/digests_h200.txt; of all kernels, or of these
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/compare/digest.h"

namespace assay {
namespace {

/// `names`: of kernels; none: of all.
int record(int64_t cases, uint64_t seed, const std::vector<std::string>& names) {
  const auto gpu = make_cuda_backend({});
  std::printf("# %s; seed %llu; token and digest (src/verification/compare/digest.h)\n", gpu->name().c_str(),
              static_cast<unsigned long long>(seed));
  for (const std::string& name : names) find_kernel(name);
  for (const Kernel& kernel : kernels()) {
    if (!names.empty() && std::count(names.begin(), names.end(), kernel.name) == 0) continue;
    const Operator& op = find_operator(kernel.operator_name);
    Feedback feedback;
    for (int64_t i = 0; i < cases; ++i) {
      const Case c = draw_case(kernel, op, feedback, seed, static_cast<uint64_t>(i));
      count_case(feedback, c, op);
      const ResolvedCase resolved = resolve_unchecked(c, op);
      const TensorMap inputs = draw_inputs(resolved);
      const Outcome outcome = gpu->run(program_of(kernel, resolved, inputs), inputs);
      if (outcome.trap) {
        std::fprintf(stderr, "record_digests: %s: %s\n", token_of(c).c_str(), outcome.trap->message.c_str());
        return 1;
      }
      std::printf("%s %016llx\n", token_of(c).c_str(),
                  static_cast<unsigned long long>(digest(outcome.outputs)));
    }
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: record_digests CASES SEED [KERNEL...]\n");
    return 2;
  }
  try {
    return assay::record(std::atoll(argv[1]), std::strtoull(argv[2], nullptr, 10), {argv + 3, argv + argc});
  } catch (const assay::BadInput& error) {
    std::fprintf(stderr, "record_digests: %s\n", error.what());
    return 2;
  }
}
