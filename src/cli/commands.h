// The subcommands. Each function adds one to `app`; when it is chosen, its callback sets `status` to the
// exit status: 0 pass, 1 a finding. Bad input leaves as BadInput (status 2), caught once in main.
#pragma once

namespace CLI {
class App;
}

namespace assay::cli {

/// Exit status beside 0 (pass) and 1 (finding).
inline constexpr int kBadInputStatus = 2, kInternalErrorStatus = 3;

void add_arithmetic(CLI::App& app, int& status);
void add_list(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);
void add_inspect(CLI::App& app, int& status);
void add_fuzz(CLI::App& app, int& status);
void add_defects(CLI::App& app, int& status);
void add_mutate(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_replay(CLI::App& app, int& status);
void add_sweep(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_merge(CLI::App& app, int& status);
void add_capsule(CLI::App&, int& status);
void add_check(CLI::App&, int& status);
void add_decode(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_watch(CLI::App& app, int& status);

}  // namespace assay::cli
