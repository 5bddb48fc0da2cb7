// A PTX module with a watch in it: the same text, with a few instructions where NaN or infinities can be
// born, that note into a buffer where one is. It computes the same bits.
//
// Of each stretch of a basic block the results that do not surely pass into a later one are folded into one
// value, which is tested once; where it is not finite, code at the function's end looks at each instruction's
// operands and notes what was born. Operands are kept until then: at most WatchOptions::kept_registers more
// than the program keeps by itself. Whole warps go there and come back together.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::watch {

struct WatchOptions {
  int kept_registers = 40;  ///< less where an entry has fewer to spare (registers_directive.h)
  /// Stretches with as many instructions to watch, which can run again, are tested at their end alone; the
  /// code aside goes through them once more.
  int least_repeated = 12;
  /// Entries with as many instructions to watch before a barrier where nothing was stored yet run to it once
  /// without notes (rehearsal.h); blocks where something is not finite begin anew.
  int least_rehearsed = 8;
  /// Whoever compiles the text knows PTX ISA 9.0: code that runs only where something is not finite is marked
  /// by .pragma "frequency" (chapter 12 there) and laid out behind the program's own instead of between.
  /// Texts of PTX 7.0 and later become 9.0, older ones stay as they are. Entries that state a number of
  /// threads alone are given registers (own_registers).
  bool marks_cold_code = false;
  /// What compilers give the entries of the text as it is; 0: unknown. Where it is known they get at most so
  /// many that kept_blocks of the blocks that a multiprocessor would hold still fit: what does not is
  /// spilled, mostly by the code aside. Else what fits one block: long ones are given 32 without a word.
  int own_registers = 0;
  std::map<std::string, int> registers_of_entries;  ///< the same of those that are named
  double kept_blocks = 0.5;                         ///< a share
  uint64_t buffer_address =
      0;  ///< what the variable kBufferVariable begins with; 0: who loads the text sets it
};

/// The module variable that holds the buffer's address: 64 bits; while it is 0, nothing is noted.
inline constexpr std::string_view kBufferVariable = "assay_watch_buffer";

/// An instruction in which something may be born; its records' place in the buffer is its index.
struct WatchedSite {
  int32_t function = -1, instruction = -1;  ///< into the module as it was before
  std::vector<ptx::Type> sources;           ///< of the operands that a record holds; none of a product
  std::vector<uint8_t> positions;           ///< theirs in the PTX
  ptx::Type result = ptx::Type::none;
  bool product = false;
};

struct WatchCounts {
  int64_t instructions = 0;  ///< as the module was
  int64_t watched = 0;       ///< of them
  int64_t added = 0;         ///< that run while all is finite
  int64_t added_aside = 0;   ///< that run where something is not
};

struct WatchedText {
  std::string ptx;
  std::vector<WatchedSite> sites;
  WatchCounts counts;
  std::vector<std::string> unwatched;  ///< opcodes that compute floats and that the watch does not know
};

/// `first_site`: the index of this module's first site in the buffer. Throws BadInput as ptx::parse does.
WatchedText rewritten(std::string_view text, const ptx::Module&, const WatchOptions&, int32_t first_site = 0);

}  // namespace assay::watch
