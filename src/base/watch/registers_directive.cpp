#include "src/base/watch/registers_directive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace assay::watch {
namespace {

// PTX ISA, "Performance-Tuning Directives"; a multiprocessor of sm_70 to sm_100 has so many registers, which
// threads are given by eights, and holds so many blocks and threads at most.
constexpr int kRegisters = 65536, kThreads = 2048, kBlocks = 32, kMost = 255, kLargestBlock = 1024;
/// CUDA's kernels of few registers wait for memory and want many blocks: their code aside is spilled then,
/// and hardly what runs. Triton's, which state their threads, hold whole rows: there what runs is spilled,
/// too.
constexpr int kFewRegisters = 40;
constexpr double kBlocksOfFew = 0.75;
/// What a test keeps where no register is left: more tests for fewer spills on the way.
constexpr int kLeastKept = 16;
/// Where some are left a test may keep as large a share of the entry's own: few of its places hold as many as
/// it has, and each test on the way makes its warp wait.
constexpr int kOwnPerKept = 6;

struct RegistersOfEntry {
  int own = 0, most = 0;  ///< as it is, and with the watch; 0: unknown
  std::string directive;
};

int own_registers_of(const ptx::Function& entry, const WatchOptions& options) {
  const auto named = options.registers_of_entries.find(entry.name);
  const int own = named == options.registers_of_entries.end() ? options.own_registers : named->second;
  return (own + 7) / 8 * 8;
}

int registers_for(double threads) {
  return static_cast<int>(kRegisters / threads) / 8 * 8;
}

RegistersOfEntry registers_of(const ptx::Function& entry, std::string_view directives,
                              const WatchOptions& options) {
  const auto names = [&](const char* directive) { return directives.find(directive) != directives.npos; };
  if (names(".maxnreg") || !entry.entry) return {};
  const bool states_threads = names(".reqntid") || names(".maxntid");
  const std::array<int32_t, 3>& block = entry.required_block;
  const int threads = !states_threads ? 0 : block[0] > 0 ? block[0] * block[1] * block[2] : entry.max_threads;
  const int own = own_registers_of(entry, options);
  if (const size_t at = directives.find(".minnctapersm"); at != directives.npos) {
    const int blocks = std::max(1, std::atoi(directives.data() + at + std::strlen(".minnctapersm")));
    return {threads > 0 ? own : 0, threads > 0 ? std::min(registers_for(threads * blocks), kMost) : 0, ""};
  }
  if (threads <= 0 || own <= 0) {
    if (own <= 0) return {0, 0, states_threads ? ".minnctapersm 1\n" : ""};
    const double share =
        own <= kFewRegisters ? std::max(kBlocksOfFew, options.kept_blocks) : options.kept_blocks;
    // Whatever block it is launched with has to fit as it did.
    const double resident = std::min(kThreads, kRegisters / own),
                 fits = std::min(kLargestBlock, kRegisters / own);
    const int most = std::min(registers_for(share * resident), registers_for(fits));
    return {own, std::min(most, kMost), most > kMost ? "" : fmt::format(".maxnreg {}\n", most)};
  }
  const int blocks = std::min({kRegisters / (threads * own), kThreads / threads, kBlocks});
  const int kept = std::max(1, static_cast<int>(std::ceil(options.kept_blocks * blocks)));
  const int most = registers_for(static_cast<double>(threads) * kept);
  return {own, std::min(most, kMost),
          most > kMost ? ".minnctapersm 1\n" : fmt::format(".maxnreg {}\n", most)};
}

}  // namespace

std::string registers_directive(const ptx::Function& entry, std::string_view directives,
                                const WatchOptions& options) {
  return registers_of(entry, directives, options).directive;
}

int kept_registers(const ptx::Function& entry, std::string_view directives, const WatchOptions& options,
                   bool runs_seldom) {
  const RegistersOfEntry registers = registers_of(entry, directives, options);
  if (registers.own == 0) return options.kept_registers;
  const int spare = registers.most - registers.own;
  const int share = spare > 0 && !runs_seldom ? registers.own / kOwnPerKept : 0;
  return std::min(options.kept_registers, std::max({kLeastKept, spare, share}));
}

}  // namespace assay::watch
