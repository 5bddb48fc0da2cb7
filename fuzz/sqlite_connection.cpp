// SQLite's C interface, as sqlite.org/c3ref documents it. Write-ahead log: what was committed survives a
// killed process, and readers do not wait for a writer.
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>

#include "fuzz/sql_connection.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kApplicationId = 0x61737379;  // "assy" in the file's header
/// Others hold the lock for milliseconds at a time. Whoever holds it longer is told of before a run begins,
/// and is waited for longer once it has.
constexpr int kOpeningMilliseconds = 3'000, kBusyMilliseconds = 20'000;

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

class SqliteConnection final : public SqlConnection {
 public:
  SqliteConnection(const std::string& path, Access access) : path_(path) {
    const bool write = access == Access::write;
    if (const fs::path folder = fs::path(path).parent_path(); write && !folder.empty()) {
      std::error_code ignored;  // opening says what is wrong
      fs::create_directories(folder, ignored);
    }
    const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    sqlite3* handle = nullptr;
    const int status = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    handle_.reset(handle);
    check(status);
    sqlite3_busy_timeout(handle, kOpeningMilliseconds);
    if (write && sqlite3_db_readonly(handle, "main") == 1) fail(SQLITE_READONLY, "it is read-only");
  }

  std::string name() const override { return path_; }

  SqlDialect dialect() const override { return {"INTEGER PRIMARY KEY", "datetime('now')"}; }

  /// Read before anything is written, so that a stranger's file stays as it is.
  std::optional<int64_t> schema() override {
    const int64_t version = number("PRAGMA user_version"), application = number("PRAGMA application_id");
    if (version == 0 && number("SELECT count(*) FROM sqlite_master") == 0) return std::nullopt;
    if (application != kApplicationId)
      throw BadInput(fmt::format("{}: a database of another program; give another file with --db", path_));
    return version;
  }

  void create(const std::string& tables, int64_t version) override {
    execute("PRAGMA journal_mode=WAL");
    transaction([&] {
      if (!schema())
        execute(tables +
                fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId, version));
      return int64_t{0};
    });
  }

  void be_patient() override { sqlite3_busy_timeout(handle_.get(), kBusyMilliseconds); }

  std::vector<SqlRow> rows(const std::string& sql, const std::vector<SqlValue>& values) override {
    sqlite3_stmt* prepared = nullptr;
    check(sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &prepared, nullptr));
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
    for (size_t i = 0; i < values.size(); ++i) bind(prepared, static_cast<int>(i) + 1, values[i]);
    std::vector<SqlRow> all;
    int status = sqlite3_step(prepared);
    for (; status == SQLITE_ROW; status = sqlite3_step(prepared)) {
      SqlRow& row = all.emplace_back(sqlite3_column_count(prepared));
      for (size_t column = 0; column < row.size(); ++column) {
        const auto* data = sqlite3_column_text(prepared, static_cast<int>(column));
        if (data != nullptr)
          row[column].assign(reinterpret_cast<const char*>(data),
                             static_cast<size_t>(sqlite3_column_bytes(prepared, static_cast<int>(column))));
      }
    }
    if (status != SQLITE_DONE) check(status);
    return all;
  }

  int64_t transaction(const std::function<int64_t()>& body) override {
    execute("BEGIN IMMEDIATE");
    try {
      const int64_t value = body();
      execute("COMMIT");
      return value;
    } catch (...) {
      sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };

  void bind(sqlite3_stmt* statement, int position, const SqlValue& value) const {
    if (const auto* number = std::get_if<int64_t>(&value))
      return check(sqlite3_bind_int64(statement, position, *number));
    const std::string& text = std::get<std::string>(value);
    check(sqlite3_bind_text(statement, position, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
  }

  void execute(const std::string& sql) const {
    check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }

  int64_t number(const char* sql) { return std::stoll(rows(sql, {}).at(0).at(0)); }

  void check(int status) const {
    if (status != SQLITE_OK)
      fail(status, handle_ != nullptr ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(status));
  }

  [[noreturn]] void fail(int status, const std::string& reason) const {
    for (const Remedy& remedy : kRemedies)
      if ((status & 0xff) == remedy.status)
        throw BadInput(fmt::format("{}: {} ({}); {}", path_, remedy.what, reason, remedy.advice));
    throw BadInput(fmt::format("{}: database error ({}); give another file with --db", path_, reason));
  }

  std::string path_;
  std::unique_ptr<sqlite3, Closer> handle_;
};

}  // namespace

std::unique_ptr<SqlConnection> open_sqlite(const std::string& path, Access access) {
  return std::make_unique<SqliteConnection>(path, access);
}

}  // namespace assay
