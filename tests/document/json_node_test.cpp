#include "src/base/document/json_node.h"

#include <gtest/gtest.h>

namespace assay {
namespace json_node_test {

std::string complaint(const std::function<void()>& read) {
  try {
    read();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing";
}

TEST(JsonNode, SaysWhereWhatIsWrongStands) {
  const nlohmann::json document{{"launches", {{{"grid", "n"}, {"threads", 3}}}}, {"n", 2.5}, {"on", 1}};
  const std::string path = "a.json";
  const JsonNode root(document, "", path);
  EXPECT_EQ(complaint([&] { root.get("ptx", "the file"); }), "a.json at /: key \"ptx\" is missing: the file");
  const JsonNode launch = root.get("launches", "").items()[0];
  EXPECT_EQ(complaint([&] {
              launch.keys({"grid", "block"});
            }),
            "a.json at /launches/0: unknown key \"threads\"; known here: grid, block");
  EXPECT_EQ(complaint([&] { launch.get("grid", "").number(); }),
            "a.json at /launches/0/grid: expected a number, got string");
  EXPECT_EQ(complaint([&] { root.get("n", "").whole(0, 9); }),
            "a.json at /n: expected a whole number from 0 to 9, got 2.5");
  EXPECT_EQ(complaint([&] { root.get("on", "").boolean(); }), "a.json at /on: expected true or false, got 1");
  EXPECT_EQ(complaint([&] { root.get("launches", "").items(2); }),
            "a.json at /launches: expected at least 2 entries, got 1");
  EXPECT_EQ(launch.get("grid", "").expression(), "n");
  EXPECT_EQ(root.get("n", "").expression(), "2.5");
}

}  // namespace json_node_test
}  // namespace assay
