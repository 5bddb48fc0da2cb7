#include "fuzz/database.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "src/base/numerics/bad_input.h"
#include "src/result/one_per_defect.h"

namespace assay {
namespace {

/// {key} and {now} are the dialect's.
constexpr const char* kTables = R"sql(
CREATE TABLE run(
  id {key}, started TEXT DEFAULT ({now}), kernels TEXT NOT NULL,
  backend TEXT NOT NULL, seed TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE finding(
  id {key}, run BIGINT NOT NULL REFERENCES run(id), found TEXT DEFAULT ({now}),
  kernel TEXT NOT NULL, cause TEXT NOT NULL, token TEXT NOT NULL, first_token TEXT NOT NULL,
  occurrences BIGINT NOT NULL DEFAULT 1, shrunk BIGINT NOT NULL DEFAULT 0, document TEXT NOT NULL);
CREATE TABLE corpus(
  id {key}, run BIGINT NOT NULL REFERENCES run(id), kernel TEXT NOT NULL, token TEXT NOT NULL,
  feature TEXT NOT NULL, UNIQUE(kernel, feature));
)sql";

constexpr const char* kAddCorpus =
    "INSERT INTO corpus(run, kernel, token, feature) VALUES(?,?,?,?) ON CONFLICT DO NOTHING";

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

std::unique_ptr<SqlConnection> opened(const std::string& where, Access access) {
  return is_postgres_url(where) ? open_postgres(where, access) : open_sqlite(where, access);
}

bool same_store(const std::string& one, const std::string& other) {
  if (is_postgres_url(one) || is_postgres_url(other)) return one == other;
  return std::filesystem::equivalent(one, other);
}

}  // namespace

Database::Database(const std::string& where, Access access) : where_(where), sql_(opened(where, access)) {
  if (has_schema()) return;
  if (access == Access::read)
    throw BadInput(fmt::format("{}: not an assay database: it has no tables", sql_->name()));
  const SqlDialect dialect = sql_->dialect();
  sql_->create(fmt::format(fmt::runtime(kTables), fmt::arg("key", dialect.key), fmt::arg("now", dialect.now)),
               kSchema);
}

bool Database::has_schema() const {
  const std::optional<int64_t> version = sql_->schema();
  if (version && *version != kSchema)
    throw BadInput(
        fmt::format("{}: database schema version {}, this assay reads version {}; give another file with "
                    "--db, or move it away",
                    sql_->name(), *version, kSchema));
  return version.has_value();
}

int64_t Database::execute(const std::string& sql, const std::vector<SqlValue>& values) {
  return sql_->transaction([&] {
    const std::vector<SqlRow> rows = sql_->rows(sql, values);
    return rows.empty() ? int64_t{0} : std::stoll(rows[0].at(0));
  });
}

int64_t Database::begin_run(const FuzzRun& run) {
  const int64_t id = execute("INSERT INTO run(kernels, backend, seed, document) VALUES(?,?,?,?) RETURNING id",
                             {joined(run.kernels), run.backend, fmt::to_string(run.seed), run_document(run)});
  sql_->be_patient();
  return id;
}

void Database::update_run(int64_t id, const FuzzRun& run) {
  execute("UPDATE run SET document=? WHERE id=?", {run_document(run), id});
}

int64_t Database::add_finding(int64_t run, const Verification& v) {
  return execute(
      "INSERT INTO finding(run, kernel, cause, token, first_token, document) VALUES(?,?,?,?,?,?) RETURNING "
      "id",
      {run, v.kernel, v.cause, v.token, v.token, to_json(v).dump()});
}

void Database::replace_finding(int64_t id, const Verification& v) {
  execute("UPDATE finding SET cause=?, token=?, document=?, shrunk=1 WHERE id=?",
          {v.cause, v.token, to_json(v).dump(), id});
}

void Database::count_occurrence(int64_t id) {
  execute("UPDATE finding SET occurrences=occurrences+1 WHERE id=?", {id});
}

void Database::add_corpus(int64_t run, const std::vector<CorpusEntry>& entries) {
  if (entries.empty()) return;
  sql_->transaction([&] {
    for (const CorpusEntry& entry : entries)
      sql_->rows(kAddCorpus, {run, entry.kernel, entry.token, entry.feature});
    return int64_t{0};
  });
}

std::vector<StoredFinding> Database::findings() const {
  std::vector<StoredFinding> all;
  for (const SqlRow& row :
       sql_->rows("SELECT id, run, kernel, cause, token, occurrences, shrunk FROM finding ORDER BY id"))
    all.push_back(
        {std::stoll(row[0]), std::stoll(row[1]), row[2], row[3], row[4], std::stoll(row[5]), row[6] != "0"});
  return all;
}

std::vector<CorpusEntry> Database::corpus() const {
  std::vector<CorpusEntry> all;
  for (const SqlRow& row : sql_->rows("SELECT kernel, token, feature FROM corpus ORDER BY id"))
    all.push_back({row[0], row[1], row[2]});
  return all;
}

Case Database::case_of(const StoredFinding& finding) const {
  try {
    return parse_token(finding.token);
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("{}: finding {}: {}; give another file with --db, or move it away",
                               sql_->name(), finding.id, error.what()));
  }
}

/// The document in columns (id, document); BadInput naming the row where it is none.
template <typename Read>
auto Database::read_document(const SqlRow& row, Read&& read) const {
  try {
    return read(nlohmann::json::parse(row[1]));
  } catch (const nlohmann::json::exception&) {
    throw BadInput(fmt::format("{}: row {}: its document is no JSON: the database is damaged; move it away",
                               sql_->name(), row[0]));
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("{}: row {}: {}", sql_->name(), row[0], error.what()));
  }
}

std::vector<Verification> Database::verifications() const {
  std::vector<Verification> all;
  for (const SqlRow& row : sql_->rows("SELECT id, document FROM finding ORDER BY id"))
    all.push_back(read_document(row, verification_of));
  return all;
}

std::optional<FuzzRun> Database::latest_run() const {
  const std::vector<SqlRow> rows = sql_->rows("SELECT id, document FROM run ORDER BY id DESC LIMIT 1");
  if (rows.empty()) return std::nullopt;
  FuzzRun run = read_document(rows[0], [](const nlohmann::json& json) { return fuzz_run_from_json(json); });
  run.findings = one_per_defect(findings_of(std::stoll(rows[0][0])));
  return run;
}

std::vector<Verification> Database::findings_of(int64_t run) const {
  std::vector<Verification> found;
  for (const SqlRow& row : sql_->rows("SELECT id, document FROM finding WHERE run=? ORDER BY id", {run}))
    found.push_back(read_document(row, verification_of));
  return found;
}

int64_t Database::merge(const std::string& where) {
  const Database other(where, Access::read);
  if (same_store(where, where_))
    throw BadInput(fmt::format("{}: cannot be merged with itself", sql_->name()));
  const std::vector<SqlRow> runs =
      other.sql_->rows("SELECT id, started, kernels, backend, seed, document FROM run ORDER BY id");
  return sql_->transaction([&] {
    int64_t fresh = 0;
    for (const SqlRow& run : runs) fresh += take_over(other, run);
    return fresh;
  });
}

/// 1, or 0 where the run is here already.
int64_t Database::take_over(const Database& other, const SqlRow& run) {
  const std::string &started = run[1], &kernels = run[2], &backend = run[3], &seed = run[4],
                    &document = run[5];
  if (!sql_->rows("SELECT id FROM run WHERE started=? AND kernels=? AND seed=? AND document=?",
                  {started, kernels, seed, document})
           .empty())
    return 0;
  const int64_t id = std::stoll(
      sql_->rows("INSERT INTO run(started, kernels, backend, seed, document) VALUES(?,?,?,?,?) RETURNING id",
                 {started, kernels, backend, seed, document})
          .at(0)
          .at(0));
  const int64_t theirs = std::stoll(run[0]);
  for (const SqlRow& row :
       other.sql_->rows("SELECT found, kernel, cause, token, first_token, occurrences, shrunk, document "
                        "FROM finding WHERE run=? ORDER BY id",
                        {theirs}))
    sql_->rows(
        "INSERT INTO finding(run, found, kernel, cause, token, first_token, occurrences, shrunk, document) "
        "VALUES(?,?,?,?,?,?,?,?,?)",
        {id, row[0], row[1], row[2], row[3], row[4], std::stoll(row[5]), std::stoll(row[6]), row[7]});
  for (const SqlRow& row :
       other.sql_->rows("SELECT kernel, token, feature FROM corpus WHERE run=? ORDER BY id", {theirs}))
    sql_->rows(kAddCorpus, {id, row[0], row[1], row[2]});
  return 1;
}

std::vector<StoredRun> Database::runs() const {
  std::vector<StoredRun> all;
  for (const SqlRow& row : sql_->rows("SELECT id, document, started FROM run ORDER BY id")) {
    StoredRun stored = read_document(row, [](const nlohmann::json& json) {
      return StoredRun{json.at("tool").at("commit").get<std::string>(), "", fuzz_run_from_json(json)};
    });
    stored.started = row[2];
    stored.run.findings = one_per_defect(findings_of(std::stoll(row[0])));
    all.push_back(std::move(stored));
  }
  return all;
}

}  // namespace assay
