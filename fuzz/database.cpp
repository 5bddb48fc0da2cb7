#include "fuzz/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "src/base/numerics/bad_input.h"
#include "src/result/one_per_defect.h"

namespace assay {
namespace {

constexpr int kApplicationId = 0x61737379;  // "assy" in the file's header
/// Others hold the lock for milliseconds at a time. Whoever holds it longer is told of before a run begins,
/// and is waited for longer once it has.
constexpr int kOpeningMilliseconds = 3'000, kBusyMilliseconds = 20'000;

constexpr const char* kTables = R"sql(
CREATE TABLE run(
  id INTEGER PRIMARY KEY, started TEXT DEFAULT (datetime('now')), kernels TEXT NOT NULL,
  backend TEXT NOT NULL, seed TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE finding(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id), found TEXT DEFAULT (datetime('now')),
  kernel TEXT NOT NULL, cause TEXT NOT NULL, token TEXT NOT NULL, first_token TEXT NOT NULL,
  occurrences INTEGER NOT NULL DEFAULT 1, shrunk INTEGER NOT NULL DEFAULT 0, document TEXT NOT NULL);
CREATE TABLE corpus(
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id), kernel TEXT NOT NULL, token TEXT NOT NULL,
  feature TEXT NOT NULL, UNIQUE(kernel, feature));
)sql";

/// What a person can do about it, by SQLite's result code.
struct Remedy {
  int status;
  const char *what, *advice;
};
constexpr Remedy kRemedies[] = {
    {SQLITE_NOTADB, "not an assay database", "give another file with --db"},
    {SQLITE_CORRUPT, "the database is damaged", "give another file with --db, or move it away"},
    {SQLITE_READONLY, "the database cannot be written",
     "check its rights and its folder's, or give another file with --db"},
    {SQLITE_BUSY, "the database is locked by another process",
     "end that process, or give another file with --db"},
    {SQLITE_LOCKED, "the database is locked by another process",
     "end that process, or give another file with --db"},
    {SQLITE_FULL, "the disk is full", "make room, or give a file on another disk with --db"},
    {SQLITE_IOERR, "the database cannot be read or written",
     "check the disk, its free space and its limits, or give another file with --db"},
    {SQLITE_CANTOPEN, "the database cannot be opened",
     "check that its folder is there and can be written, or give another file with --db"},
};

[[noreturn]] void fail(sqlite3* handle, const std::filesystem::path& path, int status) {
  const char* reason = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(status);
  for (const Remedy& remedy : kRemedies)
    if ((status & 0xff) == remedy.status)
      throw BadInput(fmt::format("{}: {} ({}); {}", path.string(), remedy.what, reason, remedy.advice));
  throw BadInput(fmt::format("{}: database error ({}); give another file with --db", path.string(), reason));
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

Verification verification_of(const nlohmann::json& json) {
  return verification_from_json(json);
}

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

Database::Database(const std::filesystem::path& path, Access access) : path_(path) {
  sqlite3* handle = nullptr;
  const bool write = access == Access::write;
  const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int status = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (status != SQLITE_OK) fail(handle, path_, status);
  sqlite3_busy_timeout(handle, kOpeningMilliseconds);
  if (write && sqlite3_db_readonly(handle, "main") == 1) fail(nullptr, path_, SQLITE_READONLY);
  if (!has_schema()) {
    if (!write) throw BadInput(fmt::format("{}: not an assay database: it has no tables", path_.string()));
    create_schema();
  }
}

Database::~Database() = default;

void Database::execute(const std::string& sql) const {
  const int status = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) fail(handle_.get(), path_, status);
}

int64_t Database::number(const char* sql) const {
  Statement query(handle_.get(), path_, sql);
  query.step();
  return query.integer(0);
}

/// The version is read before anything is written, so that a stranger's file stays as it is.
bool Database::has_schema() const {
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
}

/// Tables, version and application id appear in one transaction.
void Database::create_schema() {
  execute("PRAGMA journal_mode=WAL");
  execute("BEGIN IMMEDIATE");
  if (!has_schema())  // another process may have been first
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
  sqlite3_busy_timeout(handle_.get(), kBusyMilliseconds);
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

Case Database::case_of(const StoredFinding& finding) const {
  try {
    return parse_token(finding.token);
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("{}: finding {}: {}; give another file with --db, or move it away",
                               path_.string(), finding.id, error.what()));
  }
}

/// A stored document; BadInput naming the file where it is none.
template <typename Read>
auto Database::read_document(int64_t id, const std::string& text, Read&& read) const {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception&) {
    throw BadInput(fmt::format("{}: row {}: its document is no JSON: the database is damaged; move it away",
                               path_.string(), id));
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("{}: row {}: {}", path_.string(), id, error.what()));
  }
}

std::vector<Verification> Database::verifications() const {
  std::vector<Verification> all;
  Statement rows(handle_.get(), path_, "SELECT id, document FROM finding ORDER BY id");
  while (rows.step()) all.push_back(read_document(rows.integer(0), rows.text(1), verification_of));
  return all;
}

std::optional<FuzzRun> Database::latest_run() const {
  Statement query(handle_.get(), path_, "SELECT id, document FROM run ORDER BY id DESC LIMIT 1");
  if (!query.step()) return std::nullopt;
  FuzzRun run = read_document(query.integer(0), query.text(1),
                              [](const nlohmann::json& json) { return fuzz_run_from_json(json); });
  run.findings = one_per_defect(findings_of(query.integer(0)));
  return run;
}

std::vector<Verification> Database::findings_of(int64_t run) const {
  std::vector<Verification> found;
  Statement rows(handle_.get(), path_, "SELECT id, document FROM finding WHERE run=? ORDER BY id");
  rows.bind(run);
  while (rows.step()) found.push_back(read_document(rows.integer(0), rows.text(1), verification_of));
  return found;
}

int64_t Database::merge(const std::filesystem::path& other) {
  { const Database checked(other, Access::read); }  // of this schema
  if (std::filesystem::equivalent(other, path_))
    throw BadInput(fmt::format("{}: cannot be merged with itself", path_.string()));
  Statement(handle_.get(), path_, "ATTACH ? AS other").bind(other.string()).run();
  execute("BEGIN IMMEDIATE");
  std::vector<int64_t> fresh;
  {
    Statement query(
        handle_.get(), path_,
        "SELECT id FROM other.run AS o WHERE NOT EXISTS(SELECT 1 FROM main.run AS m WHERE "
        "m.started=o.started AND m.kernels=o.kernels AND m.seed=o.seed AND m.document=o.document) "
        "ORDER BY id");
    while (query.step()) fresh.push_back(query.integer(0));
  }
  for (const int64_t old : fresh) {
    Statement(handle_.get(), path_,
              "INSERT INTO main.run(started, kernels, backend, seed, document) "
              "SELECT started, kernels, backend, seed, document FROM other.run WHERE id=?")
        .bind(old)
        .run();
    const int64_t run = sqlite3_last_insert_rowid(handle_.get());
    for (const char* rows : {"INSERT INTO main.finding(run, found, kernel, cause, token, first_token, "
                             "occurrences, shrunk, document) "
                             "SELECT ?, found, kernel, cause, token, first_token, occurrences, shrunk, "
                             "document FROM other.finding "
                             "WHERE run=? ORDER BY id",
                             "INSERT OR IGNORE INTO main.corpus(run, kernel, token, feature) "
                             "SELECT ?, kernel, token, feature FROM other.corpus WHERE run=? ORDER BY id"})
      Statement(handle_.get(), path_, rows).bind(run).bind(old).run();
  }
  execute("COMMIT");
  execute("DETACH other");
  return static_cast<int64_t>(fresh.size());
}

std::vector<StoredRun> Database::runs() const {
  std::vector<StoredRun> all;
  Statement query(handle_.get(), path_, "SELECT id, started, document FROM run ORDER BY id");
  while (query.step()) {
    StoredRun stored = read_document(query.integer(0), query.text(2), [](const nlohmann::json& json) {
      return StoredRun{json.at("tool").at("commit").get<std::string>(), "", fuzz_run_from_json(json)};
    });
    stored.started = query.text(1);
    stored.run.findings = one_per_defect(findings_of(query.integer(0)));
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace assay
