// Findings and corpus in one SQLite file. Write-ahead log; what add_* returned from survives a killed
// process.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/result/fuzz_run.h"
#include "src/result/verification.h"

struct sqlite3;

namespace assay {

struct CorpusEntry {
  std::string kernel, token;
  std::string feature;  ///< what this case was the first to reach
};

struct StoredFinding {
  int64_t id = 0, run = 0;
  std::string kernel, cause, token;
  int64_t occurrences = 1;
  bool shrunk = false;
};

enum class Access { write, read };

/// One open file. Not for several threads at once; several processes may use one file.
class Database {
 public:
  /// Changes whenever a table changes; stored as user_version.
  static constexpr int kSchema = 1;

  /// Opens; to write, also creates. Throws BadInput where the file is no assay database, has another schema
  /// version, or cannot be written (`Access::write`).
  explicit Database(const std::filesystem::path&, Access = Access::write);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// A run begins; its id.
  int64_t begin_run(const FuzzRun&);
  /// The run's counts and tables so far.
  void update_run(int64_t run, const FuzzRun&);
  /// Committed when it returns; the finding's id.
  int64_t add_finding(int64_t run, const Verification&);
  /// Puts the shrunk result in the finding's place; the token first found stays beside it.
  void replace_finding(int64_t id, const Verification& shrunk);
  void count_occurrence(int64_t id);
  /// One transaction for all entries. A feature already stored for the kernel stays with its first case.
  void add_corpus(int64_t run, const std::vector<CorpusEntry>&);

  std::vector<StoredFinding> findings() const;
  /// Throws BadInput naming the file where its token is none.
  Case case_of(const StoredFinding&) const;
  /// The findings of all runs as they were stored.
  std::vector<Verification> verifications() const;
  std::vector<CorpusEntry> corpus() const;
  /// The latest run that was begun, its findings included, also where the run was killed. Nothing if there is
  /// none.
  std::optional<FuzzRun> latest_run() const;
  /// Takes over all runs of another file, with their findings and what they reached, in one transaction. Runs
  /// that are here already, as after merging twice, are left out; returns how many were not.
  int64_t merge(const std::filesystem::path& other);
  /// All runs with their findings, the oldest first.
  std::vector<StoredRun> runs() const;

 private:
  struct Closer {
    void operator()(sqlite3*) const;
  };
  void execute(const std::string& sql) const;
  std::vector<Verification> findings_of(int64_t run) const;
  int64_t number(const char* sql) const;
  /// False for a file without tables.
  bool has_schema() const;
  void create_schema();
  template <typename Read>
  auto read_document(int64_t id, const std::string& text, Read&&) const;

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Closer> handle_;
};

}  // namespace assay
