#include "tools/fidelity/recorded.h"

#include <fstream>

#include "src/base/numerics/bad_input.h"

namespace assay::fidelity {

std::map<std::string, std::string> recorded_digests(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadInput(path + ": cannot be read");
  std::map<std::string, std::string> result;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const size_t last = line.rfind(' ');
    const std::string digest = line.substr(last + 1);
    if (digest.size() != 16) continue;
    const size_t differing = line.rfind(' ', last - 1), results = line.rfind(' ', differing - 1);
    result[line.substr(0, results)] = digest;
  }
  return result;
}

}  // namespace assay::fidelity
