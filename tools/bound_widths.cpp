// Writes the page of how wide bounds are beside the values (bench/WIDTHS.md): bound_widths > bench/WIDTHS.md
// Only references are made, of the arithmetic that each kernel declares: no kernel runs.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "fuzz/bound_width.h"
#include "kernels/claim.h"
#include "src/case/resolved_case.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

struct Subject {
  const char *kernel, *channels;
  int64_t longest;
};
constexpr Subject kSubjects[] = {
    {"gla.chunk", "K64/V64", 4096},        {"gla.fused_recurrent", "K64/V64", 4096},
    {"simple_gla.chunk", "K64/V64", 4096}, {"simple_gla.parallel", "K64/V64", 4096},
    {"rwkv6.chunk", "K64/V64", 4096},      {"hgrn.chunk", "V64", 4096},
    {"gsa.chunk", "K64/V64/M64", 2048},    {"gsa.fused_recurrent", "K64/V64/M64", 2048},
};

void print(const Subject& subject, const char* format, const char* decay, int64_t T) {
  const Case c = parse_token(fmt::format("{}/B1/T{}/H1/{}/{}/g-fp32/{}/s1/h0/both", subject.kernel, T,
                                         subject.channels, format, decay));
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  const ResolvedCase resolved = resolve_unchecked(c, op);
  const TensorMap inputs = draw_inputs(resolved);
  const Claim claim = claim_of(kernel, resolved);
  for (const ReferenceOutput& output :
       evaluate_reference(resolved, declared_problem(claim, inputs, 1)).outputs) {
    const BoundWidth width = bound_width(output);
    std::fputs(fmt::format("| {} | {} | {} | {} | {} | {:.2g} | {:.2g} |\n", subject.kernel, output.name,
                           format, decay, T, width.median, width.caught)
                   .c_str(),
               stdout);
  }
}

}  // namespace
}  // namespace assay

int main() try {
  std::fputs(
      "# How wide bounds are beside the values\n\n"
      "Of one head of 64 channels, drawn with seed 1. Median: of an output's bounds over the root mean "
      "square\n"
      "of its exact values; at 1 an output of zeros would mostly pass by its bounds alone. Caught: the least "
      "d\n"
      "for which an output that is too large by a factor 1 + d lies beyond the bound of some element.\n"
      "Written by `bound_widths` (tools/bound_widths.cpp).\n\n"
      "| kernel | output | format | decay | T | median bound / RMS | caught |\n"
      "|---|---|---|---|---:|---:|---:|\n",
      stdout);
  for (const assay::Subject& subject : assay::kSubjects)
    for (const char* format : {"bf16", "fp32"})
      for (const char* decay : {"none", "near-one", "logsigmoid"})
        for (const int64_t T : {int64_t{512}, subject.longest}) assay::print(subject, format, decay, T);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bound_widths: %s\n", error.what());
  return 2;
}
