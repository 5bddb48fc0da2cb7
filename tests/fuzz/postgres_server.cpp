#include "tests/fuzz/postgres_server.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

namespace assay {
namespace {

namespace fs = std::filesystem;

/// Where the server's programs lie: Debian keeps them off PATH, by version.
std::optional<fs::path> programs() {
  std::vector<fs::path> folders;
  const std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    folders.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none))
    folders.push_back(version.path() / "bin");
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "initdb", none) && fs::exists(folder / "pg_ctl", none)) return folder;
  return std::nullopt;
}

/// The server refuses to run as root: then nobody does.
const passwd* other_user() {
  return geteuid() == 0 ? getpwnam("nobody") : nullptr;
}

void run(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string path = (*programs() / program).string();
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const passwd* user = other_user();
  const pid_t child = fork();
  if (child == 0) {
    if (user != nullptr &&
        (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
      _exit(125);
    if (std::freopen("/dev/null", "w", stdout) == nullptr ||
        std::freopen("/dev/null", "w", stderr) == nullptr || chdir("/") != 0)
      _exit(126);
    execv(path.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(fmt::format("{} ended with status {}", program, status));
}

}  // namespace

bool PostgresServer::available() {
  return programs().has_value() && (geteuid() != 0 || other_user() != nullptr);
}

PostgresServer::PostgresServer() {
  std::string name = (fs::temp_directory_path() / "assay_pg_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a server");
  folder_ = name;
  if (const passwd* user = other_user())
    if (chown(name.c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("chown");
  run("initdb", {"-D", (folder_ / "data").string(), "-U", "assay", "-A", "trust", "-E", "UTF8", "-N"});
  start();
}

PostgresServer::~PostgresServer() {
  try {
    stop();
  } catch (const std::exception&) {  // it was stopped by its test
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void PostgresServer::start() const {
  run("pg_ctl",
      {"-D", (folder_ / "data").string(), "-w", "-t", "60", "-l", (folder_ / "log").string(), "-o",
       fmt::format("-c listen_addresses='' -c unix_socket_directories={} -c fsync=off", folder_.string()),
       "start"});
}

void PostgresServer::stop() const {
  run("pg_ctl", {"-D", (folder_ / "data").string(), "-w", "-m", "immediate", "stop"});
}

std::string PostgresServer::url(const fs::path& folder) const {
  return fmt::format("postgresql://assay:secret@/postgres?host={}", folder.string());
}

}  // namespace assay
