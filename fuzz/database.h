// Findings and corpus in one SQLite file, or in a PostgreSQL database that many hosts write to. What add_*
// returned from survives a killed process.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/sql_connection.h"
#include "src/result/fuzz_run.h"
#include "src/result/verification.h"

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

/// One open store. Not for several threads at once; several processes, and on a server several hosts, may use
/// one. Where it is a server that went away, every function may throw ConnectionLost.
class Database {
 public:
  /// Changes whenever a table changes.
  static constexpr int kSchema = 1;

  /// Opens a file or a postgresql:// URL; to write, also creates what is missing. Throws BadInput where it is
  /// no assay database, has another schema version, or cannot be written (`Access::write`).
  explicit Database(const std::string& where, Access = Access::write);

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
  /// Takes over all runs of another store, with their findings and what they reached, in one transaction.
  /// Runs that are here already, as after merging twice, are left out; returns how many were not.
  int64_t merge(const std::string& other);
  /// All runs with their findings, the oldest first.
  std::vector<StoredRun> runs() const;

 private:
  std::vector<Verification> findings_of(int64_t run) const;
  bool has_schema() const;  ///< false for an empty store
  int64_t take_over(const Database& other, const SqlRow& run);
  template <typename Read>
  auto read_document(const SqlRow&, Read&&) const;
  /// A statement in a transaction of its own; the first number that it returns, 0 where it returns none.
  int64_t execute(const std::string& sql, const std::vector<SqlValue>& values);

  std::string where_;
  std::unique_ptr<SqlConnection> sql_;
};

}  // namespace assay
