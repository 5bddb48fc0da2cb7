#include "src/result/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

TEST(Schema, IsWhatTheListsOfFieldsGive) {
  const auto published =
      nlohmann::ordered_json::parse(std::ifstream(ASSAY_SOURCE_DIR "/reports/schema.json"));
  const nlohmann::ordered_json made = result_schema();
  EXPECT_EQ(published.size(), made.size());
  for (const auto& [name, type] : made.at("$defs").items())
    EXPECT_EQ(published.at("$defs").value(name, nlohmann::ordered_json()), type) << name;
  EXPECT_TRUE(published == made) << "write it again: ./assay list schema > reports/schema.json";
}

}  // namespace
}  // namespace assay
