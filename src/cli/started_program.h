// A program that a subcommand starts with libraries of ours in it, and what these leave for the subcommand.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace assay::cli {

/// Where libassay_cuda.so, libassay_watch.so and the names of src/standin lie: beside the build's program, or
/// installed.
std::filesystem::path standin_folder();

/// A file of its own for the answers of the program that is run; removed with this.
class AnswerFile {
 public:
  AnswerFile();
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Null where the program ended without leaving any: it was killed, or it never loaded the library.
  nlohmann::json read() const;

 private:
  std::filesystem::path path_;
};

/// Runs a program to its end; its wait status. `variables` of the environment are set, `folders` stand before
/// others in LD_LIBRARY_PATH where that is not empty. Throws BadInput where it cannot be started.
int start_program(std::vector<std::string> words, const std::map<std::string, std::string>& variables,
                  const std::string& folder);

/// "exit status 0", "ended by signal 11".
std::string ending_text(int wait_status);

}  // namespace assay::cli
