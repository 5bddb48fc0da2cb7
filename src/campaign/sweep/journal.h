// Finished points of a sweep in a file, so that an interrupted or killed sweep goes on where it stopped.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "src/result/sweep_result.h"

namespace assay {

/// A line of JSON says which sweep it is, then one per point. A last line cut off by a kill is dropped.
class Journal {
 public:
  /// Opens or begins the file; `identity` names the sweep and the program. Throws BadInput where the file is
  /// of another sweep, no journal, or cannot be written.
  Journal(std::filesystem::path, const std::string& identity);

  const std::map<int64_t, std::vector<SweepCell>>& points() const { return points_; }
  /// On disk when it returns.
  void add(int64_t point, const std::vector<SweepCell>&);
  /// The result has been written: the journal has served.
  void remove();

 private:
  void read(const std::string& identity);

  std::filesystem::path path_;
  std::map<int64_t, std::vector<SweepCell>> points_;
  std::ofstream file_;
};

}  // namespace assay
