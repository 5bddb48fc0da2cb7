#include "src/cli/help_examples.h"

#include <string_view>

namespace assay::cli {
namespace {

struct HelpRow {
  std::string_view command, examples;
};

constexpr HelpRow kRows[] = {
    {"list",
     "  assay list kernels\n"
     "  assay list operators --markdown\n"},
    {"verify",
     "  assay verify gla.chunk -T 300 -H 2 -K 64 -V 64 --decay reset --report report\n"
     "  assay verify --ptx mine.ptx --plan plan.json --inputs tensors.safetensors\n"},
    {"inspect",
     "  assay inspect tensors.safetensors\n"
     "  assay inspect dump.npz --map q=query_states,k=key_states\n"},
    {"fuzz",
     "  assay fuzz gla --time 60s\n"
     "  assay fuzz --ptx mine.ptx --plan plan.json --cases 500 --sarif findings.sarif --comment "
     "comment.md\n"},
    {"defects",
     "  assay defects gla.chunk@S1\n"
     "  assay defects --seed 1 --json defects.json\n"},
    {"merge",
     "  assay merge 1.json 2.json --out all.json\n"
     "  assay merge 1.db 2.db --out assay.db\n"},
    {"mutate",
     "  assay mutate gla.fused_recurrent --mutants 50 --seed 1\n"
     "  assay mutate --ptx mine.ptx --plan plan.json --mutants 20\n"},
    {"trace",
     "  assay trace gla.chunk@S1 -T 80 -K 64 -V 64 --decay extreme\n"
     "  assay trace gla.chunk -T 64 --at chunk_output.cuh:62 --warp 1\n"},
    {"replay",
     "  assay replay gla.chunk@S1/B1/T80/H1/K64/V64/bf16/g-fp32/extreme/s1\n"
     "  assay replay mine/B1/T12/H1/K8/V8/bf16/g-fp32/none/s1 --ptx mine.ptx --plan plan.json\n"},
    {"sweep",
     "  assay sweep gla.chunk --over length=64..1024 --over decay=none,reset\n"
     "  assay sweep gla.chunk --compare gla.fused_recurrent --over dtype=bf16,fp32 --report report\n"},
    {"report",
     "  assay report result.json --out report\n"
     "  assay report assay.db --trend --out trend\n"},
    {"decode",
     "  assay decode mine.ptx\n"
     "  assay decode mine.ptx --signatures\n"},
    {"arithmetic",
     "  assay arithmetic mine.ptx --operator gla\n"
     "  assay arithmetic mine.ptx --operator gla --declared triton-chunk\n"},
    {"check",
     "  assay check launch.json --size rows=8,columns=1000\n"
     "  assay check scan.capsule --expect outputs.npz --tolerance 1e-3\n"},
    {"run",
     "  assay run -- ./program\n"
     "  assay run --checks all -- ./program --its options\n"},
    {"watch",
     "  assay watch -- ./program\n"
     "  assay watch -- python3 train.py\n"},
    {"capsule",
     "  assay capsule show scan.capsule\n"
     "  assay capsule pack folder --out scan.capsule\n"},
};

}  // namespace

std::string help_examples(const std::string& command) {
  for (const HelpRow& row : kRows)
    if (row.command == command) return "Examples:\n" + std::string(row.examples);
  return "";
}

}  // namespace assay::cli
