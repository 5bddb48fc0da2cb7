#include "src/base/watch/registers_directive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::watch {

/// PTX ISA, "Performance-Tuning Directives"; a multiprocessor of sm_70 to sm_100 has 65536 registers, which
/// threads are given by eights, and holds 32 blocks and 2048 threads at most.
std::string registers_directive(const ptx::Function& entry, std::string_view directives,
                                const WatchOptions& options) {
  constexpr int kRegisters = 65536, kThreads = 2048, kBlocks = 32, kMost = 255;
  const auto names = [&](const char* directive) { return directives.find(directive) != directives.npos; };
  if (!(names(".reqntid") || names(".maxntid")) || names(".minnctapersm") || names(".maxnreg")) return "";
  const std::array<int32_t, 3>& block = entry.required_block;
  const int threads = block[0] > 0 ? block[0] * block[1] * block[2] : entry.max_threads;
  if (threads <= 0 || options.own_registers <= 0) return ".minnctapersm 1\n";
  const int own = (options.own_registers + 7) / 8 * 8,
            blocks = std::min({kRegisters / (threads * own), kThreads / threads, kBlocks});
  const int kept = std::max(1, static_cast<int>(std::ceil(options.kept_blocks * blocks)));
  const int most = kRegisters / (threads * kept) / 8 * 8;
  return most > kMost ? ".minnctapersm 1\n" : fmt::format(".maxnreg {}\n", most);
}

}  // namespace assay::watch
