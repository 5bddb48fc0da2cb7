#include "reports/write_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "reports/html.h"
#include "src/numerics/bad_input.h"
#include "tests/reports/sample_result.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class WriteReport : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / ("assay_write_report_" + std::to_string(::getpid()) + "_" + info->name());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string content(const char* name) const {
    std::ifstream file(folder_ / "a" / "b" / name, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  fs::path folder_;
};

TEST_F(WriteReport, WritesEveryFormIntoAFolderThatItMakes) {
  const json run = test::fuzz_run(2);
  write_report(run, folder_ / "a" / "b");
  EXPECT_EQ(content("index.html"), render_html(run));
  EXPECT_EQ(json::parse(content("result.json")), run);
  EXPECT_TRUE(content("junit.xml").starts_with("<?xml"));
  EXPECT_TRUE(content("report.md").starts_with("# fuzz"));
  EXPECT_EQ(json::parse(content("findings.sarif"))["runs"][0]["results"].size(), 2u);
}

TEST_F(WriteReport, NamesTheFolderThatCannotBeMade) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  try {
    write_report(test::passed_verification(), folder_ / "file" / "below");
    FAIL() << "no exception";
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("file/below: cannot make this folder"), std::string::npos)
        << error.what();
  }
}

TEST_F(WriteReport, WritesNothingForADocumentThatIsNoResult) {
  EXPECT_THROW(write_report(json::object(), folder_), BadInput);
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace assay
