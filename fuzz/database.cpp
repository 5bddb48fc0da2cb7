#include "fuzz/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

constexpr int kApplicationId = 0x61737379;  // "assy" in the file's header
constexpr int kBusyMilliseconds = 20'000;

constexpr const char* kTables = R"sql(
CREATE TABLE run(
  id INTEGER PRIMARY KEY, started TEXT DEFAULT (datetime('now')), kernels TEXT NOT NULL, backend TEXT NOT NULL,
  seed TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE finding(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id), found TEXT DEFAULT (datetime('now')),
  kernel TEXT NOT NULL, cause TEXT NOT NULL, token TEXT NOT NULL, first_token TEXT NOT NULL,
  occurrences INTEGER NOT NULL DEFAULT 1, shrunk INTEGER NOT NULL DEFAULT 0, document TEXT NOT NULL);
CREATE TABLE corpus(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id), kernel TEXT NOT NULL, token TEXT NOT NULL,
  feature TEXT NOT NULL, UNIQUE(kernel, feature));
)sql";

[[noreturn]] void fail(sqlite3* handle, const std::filesystem::path& path, int status) {
  const char* reason = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(status);
  if (status == SQLITE_NOTADB)
    throw BadInput(fmt::format("{}: not an assay database; give another file with --db", path.string()));
  throw BadInput(fmt::format("{}: database error: {}; give another file with --db", path.string(), reason));
}

/// One prepared statement: bind, step, read; finalised at the end of its scope.
class Statement {
 public:
  Statement(sqlite3* handle, const std::filesystem::path& path, const char* sql)
      : handle_(handle), path_(path) {
    check(sqlite3_prepare_v2(handle, sql, -1, &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT));
    return *this;
  }
  Statement& bind(int64_t value) {
    check(sqlite3_bind_int64(statement_, ++bound_, value));
    return *this;
  }
  /// True while there is a row.
  bool step() {
    const int status = sqlite3_step(statement_);
    if (status == SQLITE_ROW) return true;
    if (status != SQLITE_DONE) fail(handle_, path_, status);
    return false;
  }
  void run() {
    while (step()) {
    }
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data != nullptr ? std::string(data, sqlite3_column_bytes(statement_, column)) : std::string();
  }

 private:
  void check(int status) const {
    if (status != SQLITE_OK) fail(handle_, path_, status);
  }
  sqlite3* handle_;
  const std::filesystem::path& path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

/// The run without its findings, which have rows of their own.
std::string run_document(const FuzzRun& run) {
  FuzzRun tables = run;
  tables.findings.clear();
  return to_json(tables).dump();
}

}  // namespace

void Database::Closer::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

Database::Database(const std::filesystem::path& path) : path_(path) {
  sqlite3* handle = nullptr;
  const int status =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  handle_.reset(handle);
  if (status != SQLITE_OK) fail(handle, path_, status);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  create_or_check_schema();
}

Database::~Database() = default;

void Database::execute(const std::string& sql) const {
  const int status = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) fail(handle_.get(), path_, status);
}

/// The version is read before anything is written, so that a stranger's file stays as it is; tables, version
/// and application id appear in one transaction.
void Database::create_or_check_schema() {
  const auto number = [&](const char* sql) {
    Statement query(handle_.get(), path_, sql);
    query.step();
    return query.integer(0);
  };
  const auto check = [&] {
    const int64_t version = number("PRAGMA user_version"), application = number("PRAGMA application_id");
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (empty && version == 0) return false;
    if (application != kApplicationId)
      throw BadInput(
          fmt::format("{}: a database of another program; give another file with --db", path_.string()));
    if (version != kSchema)
      throw BadInput(
          fmt::format("{}: database schema version {}, this assay reads version {}; give another file with "
                      "--db, or move it away",
                      path_.string(), version, kSchema));
    return true;
  };
  if (check()) return;
  execute("PRAGMA journal_mode=WAL");
  execute("BEGIN IMMEDIATE");
  if (!check())  // another process may have been first
    execute(kTables +
            fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId, kSchema));
  execute("COMMIT");
}

int64_t Database::begin_run(const FuzzRun& run) {
  Statement(handle_.get(), path_, "INSERT INTO run(kernels, backend, seed, document) VALUES(?,?,?,?)")
      .bind(joined(run.kernels))
      .bind(run.backend)
      .bind(fmt::format("{}", run.seed))
      .bind(run_document(run))
      .run();
  return sqlite3_last_insert_rowid(handle_.get());
}

void Database::update_run(int64_t id, const FuzzRun& run) {
  Statement(handle_.get(), path_, "UPDATE run SET document=? WHERE id=?")
      .bind(run_document(run))
      .bind(id)
      .run();
}

int64_t Database::add_finding(int64_t run, const Verification& v) {
  Statement(handle_.get(), path_,
            "INSERT INTO finding(run, kernel, cause, token, first_token, document) VALUES(?,?,?,?,?,?)")
      .bind(run)
      .bind(v.kernel)
      .bind(v.cause)
      .bind(v.token)
      .bind(v.token)
      .bind(to_json(v).dump())
      .run();
  return sqlite3_last_insert_rowid(handle_.get());
}

void Database::replace_finding(int64_t id, const Verification& v) {
  Statement(handle_.get(), path_, "UPDATE finding SET cause=?, token=?, document=?, shrunk=1 WHERE id=?")
      .bind(v.cause)
      .bind(v.token)
      .bind(to_json(v).dump())
      .bind(id)
      .run();
}

void Database::count_occurrence(int64_t id) {
  Statement(handle_.get(), path_, "UPDATE finding SET occurrences=occurrences+1 WHERE id=?").bind(id).run();
}

void Database::add_corpus(int64_t run, const std::vector<CorpusEntry>& entries) {
  if (entries.empty()) return;
  execute("BEGIN IMMEDIATE");
  for (const CorpusEntry& entry : entries)
    Statement(handle_.get(), path_,
              "INSERT OR IGNORE INTO corpus(run, kernel, token, feature) VALUES(?,?,?,?)")
        .bind(run)
        .bind(entry.kernel)
        .bind(entry.token)
        .bind(entry.feature)
        .run();
  execute("COMMIT");
}

std::vector<StoredFinding> Database::findings() const {
  std::vector<StoredFinding> rows;
  Statement query(handle_.get(), path_,
                  "SELECT id, run, kernel, cause, token, occurrences, shrunk FROM finding ORDER BY id");
  while (query.step())
    rows.push_back({query.integer(0), query.integer(1), query.text(2), query.text(3), query.text(4),
                    query.integer(5), query.integer(6) != 0});
  return rows;
}

std::vector<CorpusEntry> Database::corpus() const {
  std::vector<CorpusEntry> rows;
  Statement query(handle_.get(), path_, "SELECT kernel, token, feature FROM corpus ORDER BY id");
  while (query.step()) rows.push_back({query.text(0), query.text(1), query.text(2)});
  return rows;
}

std::optional<FuzzRun> Database::latest_run() const {
  Statement query(handle_.get(), path_, "SELECT id, document FROM run ORDER BY id DESC LIMIT 1");
  if (!query.step()) return std::nullopt;
  FuzzRun run = fuzz_run_from_json(nlohmann::json::parse(query.text(1)));
  Statement rows(handle_.get(), path_, "SELECT document FROM finding WHERE run=? ORDER BY id");
  rows.bind(query.integer(0));
  while (rows.step()) run.findings.push_back(verification_from_json(nlohmann::json::parse(rows.text(0))));
  return run;
}

}  // namespace assay
