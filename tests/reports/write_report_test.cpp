#include "reports/write_report.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "reports/html.h"
#include "reports/markup.h"
#include "reports/page_text.h"
#include "src/base/numerics/bad_input.h"
#include "tests/reports/read_tables.h"
#include "tests/reports/sample_trend.h"
#include "tests/result/sample_result.h"
#include "tests/result/sample_sweep.h"

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
  /// The page without the charting library, which holds no results.
  std::string own_page() const {
    std::string page = content("index.html");
    return page.erase(page.find(text::vega()), text::vega().size());
  }
  fs::path folder_;
};

using Texts = std::vector<std::string>;

/// The fields as they stand in the document, or as they are shortened for reading.
Texts exact(const json& object, const std::vector<const char*>& names) {
  Texts texts;
  for (const char* name : names) texts.push_back(exact_decimal(object.at(name)));
  return texts;
}
Texts shortened(const json& object, const std::vector<const char*>& names) {
  Texts texts;
  for (const char* name : names) texts.push_back(short_decimal(object.at(name)));
  return texts;
}

/// Cells of a CSV row by the names of its columns.
Texts columns(const test::Rows& csv, size_t row, const std::vector<const char*>& names) {
  Texts texts;
  for (const char* name : names) {
    const auto found = std::find(csv.at(0).begin(), csv.at(0).end(), name);
    texts.push_back(found == csv[0].end() ? "no such column"
                                          : csv.at(row)[static_cast<size_t>(found - csv[0].begin())]);
  }
  return texts;
}

bool holds(const test::Rows& rows, const Texts& row) {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

TEST_F(WriteReport, WritesEveryFormIntoAFolderThatItMakes) {
  const json run = test::fuzz_run(2);
  write_report(run, folder_ / "a" / "b");
  EXPECT_EQ(content("index.html"), render_html(run));
  EXPECT_EQ(json::parse(content("result.json")), run);
  EXPECT_TRUE(content("junit.xml").starts_with("<?xml"));
  EXPECT_TRUE(content("report.md").starts_with("# fuzz"));
  EXPECT_EQ(json::parse(content("findings.sarif"))["runs"][0]["results"].size(), 2u);
}

TEST_F(WriteReport, EveryFormOfASweepCarriesItsNumbers) {
  write_report(to_json(test::full_sweep()), folder_ / "a" / "b");
  const json document = json::parse(content("result.json"));
  const test::Rows csv = test::read_csv(content("table.csv")),
                   markdown = test::read_markdown_table(content("report.md"), "| kernel |"),
                   page = test::read_page_numbers(own_page(), "cells");
  const std::vector<const char*> all = {"max_error", "p99_error", "max_bound", "p99_bound",
                                        "max_ratio", "p99_ratio", "max_ulp",   "p99_ulp",
                                        "rms_error", "rms_exact", "bias",      "shrinkage"},
                                 counts = {"elements",    "violation",      "nonfinite",
                                           "wrong_class", "undecided",      "gate_min",
                                           "gate_max",    "seconds_kernel", "seconds_reference"},
                                 shown = {"max_error", "p99_error", "max_bound", "max_ratio", "p99_ratio",
                                          "max_ulp",   "rms_error", "rms_exact", "bias"};
  ASSERT_EQ(page.size(), document["cells"].size());
  for (size_t i = 0; i < document["cells"].size(); ++i) {
    const json& cell = document["cells"][i];
    EXPECT_EQ(columns(csv, i + 1, all), exact(cell["over_seeds"], all));
    EXPECT_EQ(columns(csv, i + 1, counts), exact(cell, counts));
    if (cell["samples"].empty()) continue;
    Texts row = exact(cell["over_seeds"], shown);
    row.push_back(exact_decimal(cell["undecided"]));
    EXPECT_EQ(page[i], row);
    EXPECT_EQ(Texts(markdown.at(i).begin() + 4, markdown[i].end() - 1),
              shortened(cell["over_seeds"], {"max_error", "p99_error", "max_bound", "max_ratio", "max_ulp",
                                             "rms_error", "bias"}));
  }
}

TEST_F(WriteReport, EveryFormOfAVerificationCarriesItsNumbers) {
  for (const json& sample : {test::passed_verification(), test::nan_verification()}) {
    write_report(sample, folder_ / "a" / "b");
    const test::Rows csv = test::read_csv(content("table.csv")),
                     markdown = test::read_markdown_table(content("report.md"), "| output | format |"),
                     page = test::read_page_numbers(own_page(), "");
    const json outputs = json::parse(content("result.json"))["outputs"];
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<const char*> counts = {"elements", "violation", "nonfinite", "wrong_class",
                                               "undecided"};
      std::vector<const char*> all = counts, shown = counts;
      for (const char* name : {"max_ratio", "max_tightness", "max_relative_bound", "max_enclosure"})
        all.push_back(name);
      for (const char* name : {"max_ratio", "max_tightness", "max_enclosure"}) shown.push_back(name);
      EXPECT_EQ(columns(csv, i + 1, all), exact(outputs[i], all));
      EXPECT_EQ(columns(csv, i + 1, {"got", "expected", "bound"}),
                exact(outputs[i]["worst"], {"got", "expected", "bound"}));
      EXPECT_TRUE(holds(page, exact(outputs[i], all)));
      EXPECT_EQ(Texts(markdown.at(i).begin() + 2, markdown[i].end()), shortened(outputs[i], shown));
      for (const char* name : {"got", "expected", "bound"})
        EXPECT_TRUE(holds(page, exact(outputs[i]["worst"], {name}))) << name;
    }
  }
}

TEST_F(WriteReport, OutputsOfTheInputsFileStandBesideTheKernelsInEveryForm) {
  write_report(test::contradicted_verification(), folder_ / "a" / "b");
  const json held = json::parse(content("result.json"))["expected_outputs"][0];
  const std::string text = content("report.md"), title = "Outputs in the inputs' file, against the reference";
  ASSERT_NE(text.find(title), std::string::npos);
  const test::Rows markdown = test::read_markdown_table(text.substr(text.find(title)), "| output | format |"),
                   page = test::read_page_numbers(own_page(), "");
  ASSERT_EQ(markdown.size(), 1u);
  EXPECT_EQ(Texts(markdown[0].begin() + 2, markdown[0].begin() + 8),
            shortened(held, {"elements", "violation", "nonfinite", "wrong_class", "undecided", "max_ratio"}));
  EXPECT_NE(own_page().find(title), std::string::npos);
  EXPECT_TRUE(
      holds(page, exact(held, {"elements", "violation", "nonfinite", "wrong_class", "undecided", "max_ratio",
                               "max_tightness", "max_relative_bound", "max_enclosure"})));
  EXPECT_TRUE(holds(page, exact(held["worst"], {"got"})));
  EXPECT_NE(content("junit.xml").find("o in the inputs&#39; file"), std::string::npos);
  EXPECT_NE(content("findings.sarif").find("\"transposed\""), std::string::npos);
}

TEST_F(WriteReport, EveryFormOfAFuzzRunCarriesItsNumbers) {
  write_report(test::fuzz_run(1), folder_ / "a" / "b");
  const json run = json::parse(content("result.json"));
  const test::Rows csv = test::read_csv(content("table.csv")), page = test::read_page_numbers(own_page(), ""),
                   markdown = test::read_markdown_table(content("report.md"), "| kernel |"),
                   properties = test::read_markdown_table(content("report.md"), "| property |");
  const std::vector<const char*> all = {"cases", "undecided", "max_ratio", "max_tightness",
                                        "max_relative_bound"};
  for (size_t i = 0; i < run["tightness"].size(); ++i) {
    EXPECT_EQ(columns(csv, i + 1, all), exact(run["tightness"][i], all));
    EXPECT_EQ(Texts(markdown.at(i).end() - 5, markdown[i].end()), shortened(run["tightness"][i], all));
  }
  for (size_t i = 0; i < run["properties"].size(); ++i) {
    const Texts numbers = exact(run["properties"][i], {"checked", "failed"});
    EXPECT_EQ(Texts(properties.at(i).begin() + 1, properties[i].end()), numbers);
    EXPECT_TRUE(holds(page, numbers));
  }
}

TEST_F(WriteReport, EveryFormOfATrendCarriesItsNumbers) {
  write_report(test::sample_trend(), folder_ / "a" / "b");
  const json runs = json::parse(content("result.json"))["runs"];
  const test::Rows csv = test::read_csv(content("table.csv")),
                   markdown = test::read_markdown_table(content("report.md"), "| run |"),
                   page = test::read_page_numbers(own_page(), "runs");
  const std::string picture = content("1_trend_gla.chunk.svg");
  const std::vector<const char*> counts = {"cases", "passed", "findings", "undecided"};
  size_t line = 0;
  ASSERT_EQ(markdown.size(), runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    Texts shown = exact(runs[i], counts), ratios;
    EXPECT_EQ(Texts(markdown[i].end() - 4, markdown[i].end()), shown);
    for (const json& ratio : runs[i]["ratios"]) {
      ++line;
      const std::string number = exact_decimal(ratio["max_ratio"]), dtype = ratio["dtype"].get<std::string>();
      EXPECT_EQ(columns(csv, line, {"max_ratio", "dtype"}), (Texts{number, dtype}));
      EXPECT_EQ(columns(csv, line, counts), exact(runs[i], counts));
      EXPECT_NE(markdown[i][2].find(dtype + " " + short_decimal(ratio["max_ratio"])), std::string::npos);
      EXPECT_NE(picture.find("<title>" + dtype + ": run " + std::to_string(i + 1) + ", " + number + "<"),
                std::string::npos)
          << number;
      EXPECT_NE(own_page().find("<data value=\"" + number + "\">"), std::string::npos) << number;
      ratios.push_back(number);
    }
    shown.push_back(ratios.front());  // of several numbers in one cell the first is read
    EXPECT_EQ(page.at(i), shown);
  }
  EXPECT_EQ(csv.size(), line + 1);
}

TEST_F(WriteReport, ASweepAndATrendHaveTheirPicturesBesideThem) {
  for (const json& document : {to_json(test::full_sweep()), test::sample_trend()}) {
    write_report(document, folder_ / "a" / "b");
    const std::string text = content("report.md");
    size_t pictures = 0;
    for (size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++at, ++pictures)
      EXPECT_TRUE(fs::exists(folder_ / "a" / "b" / text.substr(at + 2, text.find(')', at) - at - 2)));
    EXPECT_GT(pictures, 0u);
  }
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

/// A file may grow to 100 bytes only, as on a disk that is full.
TEST_F(WriteReport, LeavesNoHalfOfAFileBehind) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto heard = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string refusal;
  try {
    write_report(test::fuzz_run(2), folder_ / "full");
  } catch (const BadInput& e) {
    refusal = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, heard);
  EXPECT_NE(refusal.find("index.html: cannot be written"), std::string::npos) << refusal;
  EXPECT_TRUE(fs::is_empty(folder_ / "full"));
}

TEST_F(WriteReport, WritesNothingForADocumentThatIsNoResult) {
  EXPECT_THROW(write_report(json::object(), folder_), BadInput);
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace assay
