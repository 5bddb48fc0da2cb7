// How many registers a watched entry asks its compiler for, and how many its tests keep.
#pragma once
#include <string>
#include <string_view>

#include "src/base/ptx/program.h"
#include "src/base/watch/rewriter.h"

namespace assay::watch {

/// The directive behind an entry's own, `directives`; "" where they ask for registers themselves, or state no
/// number of threads. Without a number of blocks per multiprocessor ptxas gives very long entries 32
/// registers and spills the rest; one block is what it may count on anyway.
std::string registers_directive(const ptx::Function&, std::string_view directives, const WatchOptions&);

/// How many registers a test of it may keep longer than the program does: WatchOptions::kept_registers, or
/// what its compiler has left, or a share of its own where that is more. `runs_seldom`: most of its tests
/// stand aside, where more of them cost nothing.
int kept_registers(const ptx::Function&, std::string_view directives, const WatchOptions&, bool runs_seldom);

}  // namespace assay::watch
