#include "src/cli/started_program.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"

namespace assay::cli {

namespace fs = std::filesystem;

fs::path standin_folder() {
  std::error_code failed;
  Dl_info here{};  // the program, or the library with all of it: in an installation, or in a Python package
  const bool found = dladdr(reinterpret_cast<const void*>(&standin_folder), &here) && here.dli_fname;
  const fs::path object =
      fs::weakly_canonical(found ? here.dli_fname : "/proc/self/exe", failed).parent_path();
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& folder : {program / "../../standin", object / "assay/standin", object / "standin"})
    if (fs::exists(folder / "libassay_cuda.so", failed)) return fs::canonical(folder);
  throw BadInput("the stand-in for the CUDA runtime (libassay_cuda.so) is not beside this program");
}

AnswerFile::AnswerFile() {
  std::string name = (fs::temp_directory_path() / "assay-run-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw BadInput(fmt::format("{}: {}", name, std::strerror(errno)));
  close(file);
  path_ = name;
}

AnswerFile::~AnswerFile() {
  std::error_code failed;
  fs::remove(path_, failed);
}

nlohmann::json AnswerFile::read() const {
  std::ifstream in(path_);
  return in.peek() == std::ifstream::traits_type::eof() ? nlohmann::json() : nlohmann::json::parse(in);
}

int start_program(std::vector<std::string> words, const std::map<std::string, std::string>& variables,
                  const std::string& folder) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> environment;
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  std::map<std::string, std::string> set = variables;
  if (!folder.empty()) set["LD_LIBRARY_PATH"] = path && *path ? fmt::format("{}:{}", folder, path) : folder;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (!set.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : set) environment.push_back(name + "=" + value);
  std::vector<char*> variables_of;
  for (std::string& text : environment) variables_of.push_back(text.data());
  variables_of.push_back(nullptr);
  pid_t process = 0;
  if (const int refused =
          posix_spawnp(&process, arguments[0], nullptr, nullptr, arguments.data(), variables_of.data()))
    throw BadInput(fmt::format("{}: cannot be started: {}", words[0], std::strerror(refused)));
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) throw BadInput(fmt::format("{}: {}", words[0], std::strerror(errno)));
  return status;
}

std::string ending_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                             : fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace assay::cli
