// What is malformed gives exactly one line that says what, where and what to do, and the exit status 2.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "src/base/tensor/safetensors.h"
#include "tests/cli/program.h"

namespace assay {
namespace bad_input_test {

namespace fs = std::filesystem;

constexpr const char* kRun = "verify gla.fused_recurrent -T 3 -H 1 -K 16 -V 8 --backend vm ";

void expect_one_line(const std::string& arguments, const ScratchFolder& here, const std::string& part = "") {
  const Ran ran = run_assay(arguments, here);
  EXPECT_EQ(ran.status, 2) << arguments << "\n" << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << arguments << ": " << ran.err;
  EXPECT_TRUE(ran.err.starts_with("assay: ")) << arguments << ": " << ran.err;
  EXPECT_NE(ran.err.find(part), std::string::npos) << arguments << ": no '" << part << "' in " << ran.err;
  EXPECT_EQ(ran.err.find("internal"), std::string::npos) << arguments << ": " << ran.err;
}

void sql(const std::string& file, const std::string& text) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

std::string example(const std::string& name) {
  return read_file(std::string(ASSAY_SOURCE_DIR) + "/examples/strangers_gla/" + name);
}

std::string naive_ptx() {
  return read_file(std::string(ASSAY_SOURCE_DIR) + "/tests/data/gla_naive.ptx");
}

/// A database of one run with one finding in it.
void write_database(const ScratchFolder& here, const std::string& name) {
  run_assay("fuzz gla.fused_recurrent --backend vm --cases 1 --db " + name, here);
  sql(here / name,
      "INSERT INTO finding(run, kernel, cause, token, first_token, document) "
      "VALUES(1, 'gla.fused_recurrent', 'violation/o', 'gla.fused_recurrent/T9', '', '{}')");
}

/// The files that the rows of bad_arguments.txt name.
void write_files(const ScratchFolder& here) {
  fs::create_directory(here / "folder");
  write_file(here / "empty", "");
  write_file(here / "text.json", "{]");
  write_file(here / "other.json", R"({"schema": 99, "kind": "verification"})");
  write_file(here / "mutation.json", R"({"schema": 1, "kind": "mutation"})");
  write_file(here / "list.json", "[]");
  write_file(here / "cut.safetensors", "12");
  run_assay(std::string(kRun) + "--json good.json", here);
  const std::string good = read_file(here / "good.json");
  write_file(here / "cut.json", good.substr(0, good.size() / 2));
  std::string noise = "SQLite format 3";
  noise += '\0';
  for (int i = 0; i < 8000; ++i) noise += static_cast<char>(i * 37 + 11);
  write_file(here / "noise.db", noise);
  sql(here / "notes.db", "CREATE TABLE notes(t)");
  run_assay("fuzz gla.fused_recurrent --backend vm --cases 1 --db runs.db", here);
  write_database(here, "row.db");
  write_database(here, "none.db");
  sql(here / "none.db", "DELETE FROM run");
  write_database(here, "old.db");
  sql(here / "old.db", "PRAGMA user_version = 99");
}

/// Each row: arguments, a tab, what the message has in it.
/// One of eight shares of the table, for tests run at a time.
class BadArguments : public testing::TestWithParam<int> {};

TEST_P(BadArguments, AreEachNamedInOneLine) {
  const ScratchFolder here;
  write_files(here);
  std::istringstream table(read_file(std::string(ASSAY_SOURCE_DIR) + "/tests/cli/bad_arguments.txt"));
  int rows = 0;
  for (std::string line; std::getline(table, line); ++rows) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    if (rows % 8 == GetParam()) expect_one_line(line.substr(0, tab), here, line.substr(tab + 1));
  }
  EXPECT_GT(rows, 440);
}

INSTANTIATE_TEST_SUITE_P(Share, BadArguments, testing::Range(0, 8));

TEST(BadInput, ATensorFileCutAnywhereOrOfAnotherHeaderIsRefused) {
  const ScratchFolder here;
  TensorMap tensors;
  for (const char* name : {"q", "k", "v", "g"})
    tensors[name] = Tensor(name, Dtype::fp32, {{"B", 1}, {"T", 3}, {"H", 1}, {"K", 4}});
  write_safetensors(here / "x.safetensors", tensors);
  const std::string whole = read_file(here / "x.safetensors");
  const size_t header = whole.find('}', whole.find("\"v\"")) + 1;
  std::vector<std::string> broken;
  for (size_t cut = 1; cut < whole.size(); cut += cut < header ? 17 : 41)
    broken.push_back(whole.substr(0, cut));
  for (const char* length : {"\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\x7f"})
    broken.push_back(std::string(length, 8) + whole.substr(8));
  for (const auto& [from, to] : {std::pair{"F32", "F31"},
                                 {"[1,3,1,4]", "[1,3,1,5]"},
                                 {"[1,3,1,4]", "[1,-3,1,4]"},
                                 {"[1,3,1,4]", "[1,3,1,\"\"]"},
                                 {"data_offsets", "data_offset_"}}) {
    std::string text = whole;
    const size_t at = text.find(from);
    if (at == std::string::npos) continue;
    const auto size = static_cast<std::ptrdiff_t>(std::string(to).size()) -
                      static_cast<std::ptrdiff_t>(std::string(from).size());
    text.replace(at, std::string(from).size(), to);
    text[0] = static_cast<char>(text[0] + size);  // the header's length
    broken.push_back(text);
  }
  for (const std::string& bytes : broken) {
    write_file(here / "broken.safetensors", bytes);
    expect_one_line("verify gla.chunk --backend vm --inputs broken.safetensors", here, "broken.safetensors");
  }
}

TEST(BadInput, APlanWithoutAKeyWithOneTwiceOrOfAnotherTypeIsRefusedWithItsPlace) {
  const ScratchFolder here;
  const std::string text = example("plan.json");
  write_file(here / "k.ptx", naive_ptx());
  const nlohmann::json plan = nlohmann::json::parse(text);
  const std::string run = "verify --ptx k.ptx --plan plan.json --backend vm -T 3 -H 1";
  const auto refused = [&](const std::string& document, const std::string& part) {
    write_file(here / "plan.json", document);
    expect_one_line(run, here, part);
  };
  for (const char* key : {"operator", "dtypes", "launches"}) {
    nlohmann::json lacking = plan;
    lacking.erase(key);
    refused(lacking.dump(), key);
  }
  for (const auto& [key, value] : plan.items()) {
    if (key == "$schema") continue;
    for (const nlohmann::json& wrong : {nlohmann::json(true), nlohmann::json({{"no such", 1}})}) {
      if (wrong.is_boolean() && value.is_boolean()) continue;
      nlohmann::json changed = plan;
      changed[key] = wrong;
      refused(changed.dump(), "plan.json");
    }
    refused("{" + nlohmann::json(key).dump() + ":" + value.dump() + "," + plan.dump().substr(1),
            "stands twice");
  }
  nlohmann::json unknown = plan;
  unknown["operator"] = "glaa";
  refused(unknown.dump(), "/operator");
  for (size_t cut = 1; cut < text.size(); cut += 1 + text.size() / 20)
    refused(text.substr(0, cut), "plan.json");
}

TEST(BadInput, PtxCutAnywhereOrForALaterArchitectureIsRefused) {
  const ScratchFolder here;
  const std::string text = naive_ptx();
  write_file(here / "plan.json", example("plan.json"));
  const auto refused = [&](const std::string& ptx, const std::string& part) {
    write_file(here / "k.ptx", ptx);
    expect_one_line("verify --ptx k.ptx --plan plan.json --backend vm -T 3 -H 1", here, part);
  };
  const size_t end = text.rfind('}');
  for (size_t cut = 0; cut < end; cut += 1 + end / 30) refused(text.substr(0, cut), "");
  for (const char* target : {"sm_120", "sm_100a", "sm_103"}) {
    std::string later = text;
    const size_t at = later.find("sm_");
    later.replace(at, later.find_first_of(" \t\r\n,", at) - at, target);
    refused(later, "sm_90 is the latest");
  }
  refused(
      "\x7f"
      "ELF",
      "k.ptx");
  refused(std::string("\0\0\0", 3), "k.ptx");
}

/// Every field of a result in turn: gone, and of a type that it cannot have.
TEST(BadInput, AResultWithAFieldGoneOrWrongIsRefused) {
  const ScratchFolder here;
  run_assay(std::string(kRun) + "--json good.json", here);
  const nlohmann::json good = nlohmann::json::parse(read_file(here / "good.json"));
  for (const char* key : {"kind", "schema", "kernel", "case", "token", "outputs", "verdict", "diagnosis",
                          "domain", "trap", "origin", "exponents"}) {
    nlohmann::json lacking = good, wrong = good;
    lacking.erase(key);
    wrong[key] =
        key == std::string("trap") || key == std::string("origin") ? nlohmann::json(7) : nlohmann::json(true);
    // A field that may be null may also be absent: older documents lack some.
    std::vector<nlohmann::json> documents = {wrong};
    if (!good[key].is_null()) documents.push_back(lacking);
    for (const nlohmann::json& document : documents) {
      write_file(here / "bad.json", document.dump());
      expect_one_line("fuzz gla.fused_recurrent --backend vm --cases 1 --db '' --baseline bad.json", here,
                      "bad.json");
    }
  }
}

TEST(BadInput, ADamagedDatabaseIsRefusedWithItsName) {
  const ScratchFolder here;
  write_database(here, "whole.db");
  const std::pair<const char*, const char*> table[] = {
      {"UPDATE finding SET token = 'gla.fused_recurrent/X9'",
       "fuzz gla.fused_recurrent --cases 1 --known-first --db bad.db"},
      {"UPDATE finding SET token = ''", "fuzz gla.fused_recurrent --cases 1 --known-first --db bad.db"},
      {"UPDATE finding SET document = '{]'", "report bad.db"},
      {"UPDATE finding SET document = '{]'", "fuzz gla.fused_recurrent --cases 1 --baseline bad.db --db ''"},
      {"UPDATE finding SET document = '[]'", "report bad.db"},
      {"UPDATE run SET document = ''", "report bad.db"},
      {"UPDATE run SET document = '7'", "report bad.db"},
      {"DELETE FROM finding; DELETE FROM run", "report bad.db"},
      {"DROP TABLE finding", "fuzz gla.fused_recurrent --cases 1 --known-first --db bad.db"},
      {"DROP TABLE run", "fuzz gla.fused_recurrent --cases 1 --db bad.db"},
      {"PRAGMA user_version = 2", "report bad.db"},
      {"PRAGMA application_id = 7", "report bad.db"},
  };
  for (const auto& [change, command] : table) {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(here / (std::string("bad.db") + end));
    fs::copy_file(here / "whole.db", here / "bad.db");
    sql(here / "bad.db", change);
    expect_one_line(command, here, "bad.db");
  }
  const std::string whole = read_file(here / "whole.db");
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {  // whatever the pages hold: no crash, never an internal error
    for (const char* end : {"-wal", "-shm"}) fs::remove(here / (std::string("bad.db") + end));
    std::string bytes =
        whole.substr(0, round % 3 == 0 ? 100 + random() % (whole.size() - 100) : whole.size());
    for (int i = 0; i < 200; ++i) bytes[100 + random() % (bytes.size() - 100)] = static_cast<char>(random());
    write_file(here / "bad.db", bytes);
    const Ran ran = run_assay("report bad.db", here);
    EXPECT_TRUE(ran.status == 2 || ran.status == 0)
        << "seed 7, round " << round << ": " << ran.status << ran.err;
    if (ran.status != 2) continue;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(BadInputCampaign, ALockedDatabaseIsRefusedBeforeTheRun) {
  const ScratchFolder here;
  write_database(here, "held.db");
  const std::string run = "fuzz gla.fused_recurrent --backend vm --cases 8 --seed 1 --db held.db";
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open((here / "held.db").c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  expect_one_line(run, here, "locked by another process");
  sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(handle);
  EXPECT_EQ(run_assay(run, here).status, 0);
}

/// Files may grow to 100 KiB only, as on a disk that is nearly full. Two findings' documents do not fit.
TEST(BadInputCampaign, AFullDiskLosesNoFindingOnTheConsole) {
  const ScratchFolder here;
  const std::string run = "fuzz hgrn.fused_recurrent@U1 --backend vm --cases 10 --seed 1 --db ";
  run_assay(run + "''", here);  // compiles the patched kernel, whose PTX would not fit either
  const Ran ran = run_assay(run + "small.db", here, "trap '' XFSZ; ulimit -f 100;");
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.err.find("assay: small.db: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("the run goes on and stores nothing more"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("small.db", ran.err.find("small.db") + 1), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("; seed 1"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find(" 0 findings"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("assay replay hgrn.fused_recurrent@U1/"), std::string::npos) << ran.out;
}

TEST(BadInput, MutantsThatWereAllKilledLeaveNothingToTryAgain) {
  const ScratchFolder here;
  write_file(here / "killed.json",
             R"({"kernel": "gla.chunk", "mutants": [{"id": "a", "original": "b", "outcome": "killed"}]})");
  const Ran ran = run_assay("mutate gla.chunk --again killed.json", here);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "assay: --again killed.json: none survived in it, so nothing is left to try\n");
  const struct {
    const char *option, *words;
  } rows[] = {{"--arch sm_99", "sm_99"},
              {"--direction up", "up"},
              {"--fail-under 101", "--fail-under"},
              {"--time 5x", "5x"}};
  for (const auto& row : rows) {
    const Ran wrong = run_assay(std::string("mutate gla.chunk --again killed.json ") + row.option, here);
    EXPECT_EQ(wrong.status, 2) << row.option << ": read although nothing is left to try";
    EXPECT_NE(wrong.err.find(row.words), std::string::npos) << wrong.err;
  }
}

}  // namespace bad_input_test
}  // namespace assay
