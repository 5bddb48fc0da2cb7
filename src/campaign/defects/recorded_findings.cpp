#include "src/campaign/defects/recorded_findings.h"

#include <fmt/format.h>

#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"

namespace assay {
namespace {

constexpr const char* kHead =
    "# Findings of known defects: token, cause, digest of the output bits (- where the run trapped or ran "
    "only\n"
    "# some blocks). Written by `assay defects --tokens FILE`, replayed by `assay defects --check FILE`; "
    "both\n"
    "# together write it anew from its tokens.\n";

}  // namespace

std::string without_line(const std::string& cause) {
  const size_t end = cause.find_last_not_of("0123456789");
  return end != cause.npos && end + 1 < cause.size() && cause[end] == ':' ? cause.substr(0, end) : cause;
}

std::vector<RecordedFinding> read_findings(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<RecordedFinding> findings;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    RecordedFinding stored;
    if (!(words >> stored.token >> stored.cause >> stored.digest))
      throw BadInput(fmt::format("{}: '{}' is not TOKEN CAUSE DIGEST, as --tokens writes them", path, line));
    findings.push_back(stored);
  }
  return findings;
}

void write_findings(const std::string& path, const std::vector<RecordedFinding>& findings) {
  std::string text = kHead;
  for (const RecordedFinding& stored : findings)
    text += fmt::format("{} {} {}\n", stored.token, without_line(stored.cause), stored.digest);
  write_file(path, text);
}

}  // namespace assay
