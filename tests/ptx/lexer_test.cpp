#include "src/base/ptx/lexer.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"

namespace assay::ptx {
namespace {

std::string message_of(const char* text, void (*read)(Lexer&)) {
  Lexer lexer(text, "k.ptx");
  try {
    read(lexer);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Lexer, ReadsEverySpellingOfANumber) {
  const struct {
    const char* text;
    uint64_t bits;
    int float_bytes;
  } rows[] = {
      {"0", 0, 0},
      {"017", 15, 0},
      {"0x1FU", 31, 0},
      {"0b101", 5, 0},
      {"-1", ~uint64_t{0}, 0},
      {"18446744073709551615", ~uint64_t{0}, 0},
      {"0f3F800000", 0x3f800000, 4},
      {"-0f3F800000", 0xbf800000, 4},
      {"0d3FF0000000000000", 0x3ff0000000000000, 8},
      {"1.5", 0x3ff8000000000000, 8},
      {"-2e-1", 0xbfc999999999999a, 8},
      {"0x1e-1", 0x1e, 0},  // a hexadecimal number, then "-1"
  };
  for (const auto& row : rows) {
    Lexer lexer(row.text, "k.ptx");
    const Literal got = lexer.literal();
    EXPECT_EQ(got.bits, row.bits) << row.text;
    EXPECT_EQ(got.float_bytes, row.float_bytes) << row.text;
    EXPECT_EQ(got.is_float, row.float_bytes > 0) << row.text;
  }
}

TEST(Lexer, SplitsNamesDirectivesAndOpcodes) {
  Lexer lexer(".reg .b32 %r<2>; ld.global.L1::no_allocate.b32 %r1, [$p_1+4];", "k.ptx");
  EXPECT_EQ(lexer.directive(), "reg");
  EXPECT_EQ(lexer.directive(), "b32");
  EXPECT_EQ(lexer.name(), "%r");
  lexer.skip_statement();
  EXPECT_EQ(lexer.opcode(), "ld.global.L1::no_allocate.b32");
  EXPECT_EQ(lexer.name(), "%r1");
  lexer.expect(',');
  lexer.expect('[');
  EXPECT_EQ(lexer.name(), "$p_1");
  EXPECT_TRUE(lexer.number_next());
  EXPECT_EQ(lexer.integer(), 4);
  EXPECT_FALSE(lexer.accept(';'));
  EXPECT_TRUE(lexer.accept(']'));
}

TEST(Lexer, CountsLinesThroughCommentsAndAfterGoingBack) {
  Lexer lexer("// one\n/* two\n three */ a\n  b", "k.ptx");
  EXPECT_EQ(lexer.line(), 3);
  const size_t start = lexer.position();
  EXPECT_EQ(lexer.name(), "a");
  EXPECT_EQ(lexer.line(), 4);
  EXPECT_EQ(lexer.column(), 3);
  lexer.rewind(start);
  EXPECT_EQ(lexer.line(), 3);
  EXPECT_EQ(lexer.column(), 11);
}

TEST(Lexer, SkipsBracesButNotThoseInStringsAndComments) {
  Lexer lexer("{ \"}\" { } /* } */ // }\n } end", "k.ptx");
  ASSERT_TRUE(lexer.accept('{'));
  lexer.skip_braces();
  EXPECT_EQ(lexer.name(), "end");
  EXPECT_TRUE(lexer.at_end());
}

TEST(Lexer, SaysWhereAndWhatIsWrong) {
  const auto literal = [](Lexer& l) { l.literal(); };
  const auto quoted = [](Lexer& l) { l.quoted(); };
  const struct {
    const char* text;
    void (*read)(Lexer&);
    const char* message;
  } rows[] = {
      {"0f12", literal, "k.ptx:1:1: float literal 0f12 has a wrong number of digits"},
      {"\n 09", literal, "k.ptx:2:2: malformed number 09"},
      {"0xG", literal, "k.ptx:1:1: malformed number 0xG"},
      {"99999999999999999999", literal, "k.ptx:1:1: malformed number 99999999999999999999"},
      {"", literal, "k.ptx:1:1: expected a number"},
      {"1.5", [](Lexer& l) { l.integer(); }, "k.ptx:1:1: expected an integer"},
      {"\"a\nb\"", quoted, "k.ptx:1:3: string is not closed"},
      {"/* a", [](Lexer& l) { l.at_end(); }, "k.ptx:1:1: comment is not closed"},
      {"{ { }", [](Lexer& l) { l.skip_braces(); }, "k.ptx:1:6: expected '}', got the end of the text"},
      {"a", [](Lexer& l) { l.expect(';'); }, "k.ptx:1:1: expected ';', got 'a'"},
      {" ", [](Lexer& l) { l.expect(';'); }, "k.ptx:1:2: expected ';', got the end of the text"},
  };
  for (const auto& row : rows) EXPECT_EQ(message_of(row.text, row.read), row.message);
}

}  // namespace
}  // namespace assay::ptx
