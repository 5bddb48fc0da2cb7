#include "src/base/tensor/unambiguous_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

std::string message(const std::string& text) {
  try {
    parse_unambiguous(text, "x", "not JSON");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(UnambiguousJson, IsRead) {
  EXPECT_EQ(parse_unambiguous(R"({"a": {"b": [1, 2]}, "b": {"a": 3}})", "x", "").at("b").at("a"), 3);
}

TEST(UnambiguousJson, EqualKeysDeepNestingAndOtherTextAreRefused) {
  EXPECT_EQ(message(R"({"a": {"b": 1, "b": 2}})"), "x: key \"b\" stands twice in one object; leave one out");
  EXPECT_EQ(message(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_EQ(message(std::string(1000000, '[')), "x: nests deeper than 64");
  EXPECT_EQ(message("{]").find("x: not JSON: parse error at line 1, column 2"), 0u) << message("{]");
  EXPECT_EQ(message("1e999").find("x: not JSON: number overflow"), 0u) << message("1e999");
}

TEST(UnambiguousJson, WhatIsQuotedIsShort) {
  EXPECT_LT(message("[" + std::string(1000000, '7') + "x").size(), 300u);
}

}  // namespace
}  // namespace assay
