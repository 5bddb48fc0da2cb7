#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fuzz/sql_connection.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace sqlite_connection_test {

class SqliteConnection : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(file_); }
  void TearDown() override {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + end);
  }
  std::unique_ptr<SqlConnection> made() const {
    auto connection = open_sqlite(file_, Access::write);
    connection->create("CREATE TABLE note(id INTEGER PRIMARY KEY, number BIGINT, text TEXT);", 7);
    return connection;
  }
  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("assay_sqlite_" + std::to_string(getpid()) + ".db"))
          .string();
};

TEST_F(SqliteConnection, ValuesComeBackAsTheyWereGiven) {
  const auto connection = made();
  const std::string text("a '?' and\0more", 14);
  connection->rows("INSERT INTO note(number, text) VALUES(?, ?)", {int64_t{-9223372036854775807}, text});
  connection->rows("INSERT INTO note(number) VALUES(?)", {int64_t{3}});
  const std::vector<SqlRow> rows = connection->rows("SELECT number, text FROM note ORDER BY id");
  EXPECT_EQ(rows, (std::vector<SqlRow>{{"-9223372036854775807", text}, {"3", ""}}));
}

TEST_F(SqliteConnection, ATransactionThatFailsLeavesNothing) {
  const auto connection = made();
  const auto insert = [&] { connection->rows("INSERT INTO note(number) VALUES(1)"); };
  EXPECT_THROW(connection->transaction([&]() -> int64_t {
    insert();
    throw BadInput("no");
  }),
               BadInput);
  EXPECT_TRUE(connection->rows("SELECT id FROM note").empty());
  EXPECT_EQ(connection->transaction([&] {
    insert();
    return int64_t{42};
  }),
            42);
  EXPECT_EQ(connection->rows("SELECT id FROM note").size(), 1u);
}

TEST_F(SqliteConnection, KnowsItsVersionAndMakesTablesOnce) {
  EXPECT_EQ(open_sqlite(file_, Access::write)->schema(), std::nullopt);
  EXPECT_EQ(made()->schema(), 7);
  EXPECT_EQ(made()->schema(), 7) << "a second process that came later";
}

TEST_F(SqliteConnection, AReaderCannotWrite) {
  made();
  const auto reader = open_sqlite(file_, Access::read);
  EXPECT_THROW(reader->rows("INSERT INTO note(number) VALUES(1)"), BadInput);
}

}  // namespace sqlite_connection_test
}  // namespace assay
