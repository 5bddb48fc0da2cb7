// --shard i/n of the campaigns.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "src/campaign/engine/shard.h"

namespace assay::cli {

/// Throws BadInput saying what is not "2/4".
Shard parse_shard(const std::string&);
/// The option; `help` says what is shared out.
CLI::Option* add_shard_option(CLI::App&, std::string& text, const std::string& help);

/// Throws BadInput where mpirun started several of a command that is not shared out by it: each would do all
/// of the work.
void require_one_process(const std::string& command);

}  // namespace assay::cli
