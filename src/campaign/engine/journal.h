// Records of finished jobs in a file, so that an interrupted or killed campaign goes on where it stopped.
#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "src/campaign/engine/engine.h"

namespace assay {

/// A line of JSON says which campaign it is, then one per record. It is only appended to; a last line cut off
/// by a kill is dropped.
class Journal {
 public:
  /// Kept nowhere.
  Journal() = default;
  /// Opens or begins the file; empty: kept nowhere. `kind` is what the campaign is called ("sweep"),
  /// `identity` says all that its records depend on, the program among it. Throws BadInput where the file is
  /// of another campaign, no journal, or cannot be written.
  Journal(std::filesystem::path, std::string kind, const std::string& identity);

  /// Of a job done before; null: none. A job's name is the same in every run of its campaign, and the record
  /// is all that the result takes from the job.
  const nlohmann::json* find(const std::string& job) const;
  /// On disk when it returns.
  void add(const std::string& job, const nlohmann::json& record);
  /// The result has been written: the journal has served.
  void remove();

 private:
  void read(const std::string& identity);

  std::filesystem::path path_;
  std::string kind_;
  std::map<std::string, nlohmann::json> records_;
  std::ofstream file_;
};

/// The task of a job whose record is JSON. A record that the journal holds is merged as it is; else `work`
/// gives it (null: it was interrupted, and there is none), and it is in the journal before it is merged. The
/// journal outlives the task.
Task journaled(Journal&, std::string job, std::function<nlohmann::json()> work,
               std::function<void(const nlohmann::json&)> merge);

}  // namespace assay
