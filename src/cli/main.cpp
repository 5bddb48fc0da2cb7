// assay_main, the program: the subcommands, one file each (commands.h), and the one place where what they
// throw becomes a line on standard error and an exit status.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "kernels/compile_ptx.h"
#include "reports/console.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/printable.h"
#include "src/case/names.h"
#include "src/cli/commands.h"
#include "src/cli/help_examples.h"
#include "src/result/tool.h"

namespace assay::cli {
namespace {

std::string version_text() {
  const std::string commit(tool_commit());
  return fmt::format("assay {}{}", tool_version(), commit.empty() ? "" : fmt::format(" ({})", commit));
}

constexpr size_t kLongestMessage = 2000;

/// One line on standard error, whatever the message holds.
int complain(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  while (!message.empty() && message.back() == ' ') message.pop_back();
  message = ptx::printable(message);  // names of files and tensors are anybody's
  if (message.size() > kLongestMessage) message = message.substr(0, kLongestMessage) + " ...";
  fmt::print(stderr, "assay: {}\n", message);
  return status;
}

/// "assay verify" of the subcommand the arguments chose, for "see ... --help".
std::string chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? "assay" : fmt::format("assay {}", subcommands.front()->get_name());
}

/// Of arguments that nothing takes: what the first option among them may have been meant to be.
std::string unexpected_text(const CLI::App& app, const std::string& message) {
  const auto subcommands = app.get_subcommands();
  const size_t at = message.find("--");
  if (subcommands.empty() || at == message.npos) return message;
  const std::string given = message.substr(at + 2, message.find_first_of(" =", at) - at - 2);
  std::vector<std::string> known;
  for (const CLI::Option* option : subcommands.front()->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  const std::string* const near = nearest_name(given, known);
  return near ? fmt::format("unknown option '--{}': did you mean '--{}'?", given, *near) : message;
}

/// The first argument, if it names no subcommand and is no option of the program's own, is most likely a
/// misspelt one.
void require_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return;
  const std::string first(argv[1]);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (!first.starts_with('-')) {
    if (std::find(names.begin(), names.end(), first) == names.end())
      throw BadInput(unknown_name("subcommand", first, names));
    return;
  }
  const std::string option = first.substr(0, first.find('='));
  if (app.get_option_no_throw(option) != nullptr) return;
  const std::string bare = option.substr(std::min(option.size(), option.find_first_not_of('-')));
  const std::string* const near = nearest_name(bare, names);
  throw BadInput(fmt::format("unknown option '{}' where a subcommand should be{}; see assay --help", option,
                             near ? fmt::format(": did you mean '{}'?", *near) : ""));
}

/// What was printed may still wait in the buffer, and the disk be full: then no result was given.
bool written_out() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return true;
  complain(fmt::format("standard output: cannot be written: {}", std::strerror(errno)), kBadInputStatus);
  return false;
}

/// On a terminal, a line that says what is being compiled, taken away again.
void show_compilations() {
  if (!isatty(STDERR_FILENO)) return;
  on_compilation([count = 0](const std::string& module, bool compiled) mutable {
    fmt::print(stderr, "\r\x1b[K");
    if (!compiled) fmt::print(stderr, "assay: compiling kernels, {}: {}", ++count, module);
    std::fflush(stderr);
  });
}

/// What one case freed stays with the process for the next, as glibc decides by itself once 32 MB were freed
/// at once. Taken from the system again page by page it is a third of the time of a small run with shadows.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

/// Parses and thereby runs, or prints what was asked for in its place.
void parse(CLI::App& app, int argc, char** argv) {
  try {
    require_subcommand(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    Console(stdout).help(app.help());
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
  }
}

int run(int argc, char** argv) {
  keep_freed_memory();
  show_compilations();
  CLI::App app{"assay: verifies GPU kernels numerically, on a GPU or without one.", "assay"};
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  int status = 0;
  for (const auto add : {add_list, add_verify, add_inspect, add_fuzz, add_defects, add_mutate, add_trace,
                         add_replay, add_sweep, add_report, add_merge, add_decode, add_arithmetic, add_check,
                         add_run, add_watch, add_capsule})
    add(app, status);
  for (CLI::App* command : app.get_subcommands({})) {
    command->add_flag_callback("--wide", Console::set_wide,
                               "Does not fold tables to the terminal, or to 100 columns");
    const std::string own = command->get_footer();
    command->footer(own + (own.empty() ? "" : "\n") + help_examples(command->get_name()));
  }
  try {
    parse(app, argc, argv);
    return status;
  } catch (const CLI::ExtrasError& error) {
    return complain(fmt::format("{}; see {} --help", unexpected_text(app, error.what()), chosen(app)),
                    kBadInputStatus);
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{}; see {} --help", error.what(), chosen(app)), kBadInputStatus);
  } catch (const BadInput& error) {
    return complain(error.what(), kBadInputStatus);
  } catch (const CannotCompile& error) {
    return complain(error.what(), kBadInputStatus);
  } catch (const std::system_error& error) {  // a full disk, a forbidden folder, no more threads
    return complain(error.what(), kBadInputStatus);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory for this case; make it smaller", kBadInputStatus);
  } catch (const std::exception& error) {
    return complain(fmt::format("internal error: {}", error.what()), kInternalErrorStatus);
  }
}

}  // namespace
}  // namespace assay::cli

/// The library of packages exports it.
extern "C" __attribute__((visibility("default"))) int assay_main(int argc, char** argv) {
  // What is printed to be pasted begins as this did; the launcher says so itself.
  if (argc > 0 && std::strchr(argv[0], '/')) setenv("ASSAY_STARTED_AS", argv[0], 0);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is a write that fails, with a line that says so
  const int status = assay::cli::run(argc, argv);
  // What is bad input was said already, and may have been this.
  return status == assay::cli::kBadInputStatus || assay::cli::written_out() ? status
                                                                            : assay::cli::kBadInputStatus;
}
