// What the findings database asks of a store that speaks SQL. Two answer: a file (SQLite) and a server
// (PostgreSQL).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/base/numerics/bad_input.h"

namespace assay {

using SqlValue = std::variant<int64_t, std::string>;

/// The columns of one row, as text. NULL is empty.
using SqlRow = std::vector<std::string>;

enum class Access { write, read };

/// What both dialects write differently when tables are made.
struct SqlDialect {
  const char* key;  ///< type of a primary key that the store counts
  const char* now;  ///< the time in UTC, as "2025-01-31 12:00:00"
};

/// The server went away: the same transaction may be tried again.
class ConnectionLost : public BadInput {
 public:
  using BadInput::BadInput;
};

/// Not for several threads at once.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  /// For messages; a password is left out.
  virtual std::string name() const = 0;
  virtual SqlDialect dialect() const = 0;
  /// Version of assay's tables; nothing where the store is empty. BadInput where it is another program's.
  virtual std::optional<int64_t> schema() = 0;
  /// Makes tables and version in one transaction. Where another process was first, nothing.
  virtual void create(const std::string& tables, int64_t version) = 0;
  /// What a run waits for from now on, instead of what one waits for who opens: others' locks.
  virtual void be_patient() = 0;

  /// Every `?` outside of quotes stands for the next value.
  virtual std::vector<SqlRow> rows(const std::string& sql, const std::vector<SqlValue>& values = {}) = 0;

  /// Committed once when it returns. After ConnectionLost the next call has to be the same transaction again:
  /// where its commit was carried out and only the answer was lost, `body` is not run a second time, and the
  /// first one's value is returned.
  virtual int64_t transaction(const std::function<int64_t()>& body) = 0;
};

/// Both throw BadInput where the store cannot be opened, or not written with Access::write.
std::unique_ptr<SqlConnection> open_sqlite(const std::string& path, Access);
std::unique_ptr<SqlConnection> open_postgres(const std::string& url, Access);

/// postgresql://.. or postgres://..
bool is_postgres_url(const std::string&);

}  // namespace assay
