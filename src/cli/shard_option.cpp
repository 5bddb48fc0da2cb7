#include "src/cli/shard_option.h"

#include <fmt/format.h>

#include <charconv>

#include "src/base/numerics/bad_input.h"
#include "src/campaign/team/team.h"

namespace assay::cli {
namespace {

constexpr int64_t kMostShards = 1'000'000;

}  // namespace

void require_one_process(const std::string& command) {
  if (const int processes = launched_processes(); processes > 1)
    throw BadInput(
        fmt::format("{}: started as one of {} processes, and only fuzz is shared out among them: give "
                    "each a part of its own by --shard",
                    command, processes));
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.number);
  const bool divided = first == std::errc() && slash != end && *slash == '/';
  const auto [stop, second] = std::from_chars(divided ? slash + 1 : end, end, shard.of);
  const bool numbers = divided && second == std::errc() && stop == end;
  if (!numbers || shard.number < 1 || shard.number > shard.of || shard.of > kMostShards)
    throw BadInput(fmt::format("--shard: '{}' is not one of 1/N to N/N, as in 2/4", text));
  return shard;
}

CLI::Option* add_shard_option(CLI::App& app, std::string& text, const std::string& help) {
  return app.add_option("--shard", text, help + "; 'assay merge' puts the results of 1/N to N/N together")
      ->type_name("I/N");
}

}  // namespace assay::cli
