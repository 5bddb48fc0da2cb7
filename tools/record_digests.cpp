// Records what a GPU computes for a seeded series of cases: one line "TOKEN DIGEST" each, to standard output.
// tests/laws/recorded_digest_test.cpp runs the same cases on the virtual machine and compares.
//   record_digests CASES SEED [KERNEL...] > tests/data/digests_h200.txt; of all kernels, or of these
//   record_digests FILE [KERNEL...]   those that FILE records of these kernels, again
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/compare/digest.h"

namespace assay {
namespace {

bool named(const std::vector<std::string>& names, const std::string& kernel) {
  return names.empty() || std::count(names.begin(), names.end(), kernel) > 0;
}

std::vector<Case> drawn(int64_t cases, uint64_t seed, const std::vector<std::string>& names) {
  std::vector<Case> all;
  for (const Kernel& kernel : kernels()) {
    if (!named(names, kernel.name)) continue;
    const Operator& op = find_operator(kernel.operator_name);
    Feedback feedback;
    for (int64_t i = 0; i < cases; ++i) {
      all.push_back(draw_case(kernel, op, feedback, seed, static_cast<uint64_t>(i)));
      count_case(feedback, all.back(), op);
    }
  }
  return all;
}

std::vector<Case> recorded(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  if (!file) throw BadInput(path + ": no such file: name one of lines \"TOKEN DIGEST\"");
  std::vector<Case> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const Case c = parse_token(line.substr(0, line.find(' ')));
    if (named(names, c.kernel)) all.push_back(c);
  }
  return all;
}

int record(const std::vector<Case>& cases, const std::string& of) {
  const auto gpu = make_cuda_backend({});
  std::printf("# %s; %s; token and digest (src/verification/compare/digest.h)\n", gpu->name().c_str(),
              of.c_str());
  for (const Case& c : cases) {
    const Kernel& kernel = find_kernel(c.kernel);
    const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
    const TensorMap inputs = draw_inputs(resolved);
    const Outcome outcome = gpu->run(program_of(kernel, resolved, inputs), inputs);
    if (outcome.trap) {
      std::fprintf(stderr, "record_digests: %s: %s\n", token_of(c).c_str(), outcome.trap->message.c_str());
      return 1;
    }
    std::printf("%s %016llx\n", token_of(c).c_str(),
                static_cast<unsigned long long>(digest(outcome.outputs)));
  }
  return 0;
}

int record(const std::vector<std::string>& arguments) {
  const bool again = arguments[0].find_first_not_of("0123456789") != std::string::npos;
  const std::vector<std::string> names(arguments.begin() + (again ? 1 : 2), arguments.end());
  for (const std::string& name : names) find_kernel(name);
  if (again) return record(recorded(arguments[0], names), arguments[0]);
  const uint64_t seed = std::stoull(arguments[1]);
  return record(drawn(std::stoll(arguments[0]), seed, names), "seed " + std::to_string(seed));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 2 || (argc < 3 && std::atoll(argv[1]) > 0)) {
    std::fprintf(stderr, "usage: record_digests CASES SEED [KERNEL...], or FILE [KERNEL...]\n");
    return 2;
  }
  try {
    return assay::record({argv + 1, argv + argc});
  } catch (const assay::BadInput& error) {
    std::fprintf(stderr, "record_digests: %s\n", error.what());
    return 2;
  }
}
