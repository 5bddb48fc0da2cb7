#include "src/base/ptx/parse_entry.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/inlined_frames.h"

namespace assay::ptx {
namespace {

const std::string preamble = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// An entry whose body has braces in comments, strings and blocks, and a call inlined at a line of its own.
std::string entry_text(const std::string& name, int line) {
  const std::string at = std::to_string(line);
  return ".visible .entry " + name + "(.param .u64 p)\n.maxntid 64, 1, 1\n{\n.pragma \"}\";  // }\n" +
         "/* { */ .reg .b32 %r<3>;\n.loc 1 " + at + " 3\n{ mov.u32 %r1, " + at + "; }\n" + ".loc 1 7 5, " +
         "function_name $L_name, inlined_at 1 " + at + " 3\nadd.s32 %r2, %r1, %r1;\nret;\n}\n";
}

const std::string three = preamble + ".global .b32 before;\n" + entry_text("first", 11) +
                          ".shared .b8 tile[16];\n" + entry_text("second", 22) + entry_text("third", 33) +
                          ".file 1 \"a.cu\"\n";

TEST(ParseEntry, OtherEntriesAreDeclaredAndHaveNoInstructions) {
  const Module module = parse_entry(three, "t.ptx", "second");
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_EQ(module.variables.size(), 2u);
  for (const Function& function : module.functions) {
    EXPECT_TRUE(function.defined && function.entry && function.refused.empty()) << function.refused;
    EXPECT_EQ(function.max_threads, 64);
    EXPECT_EQ(function.parameters.size(), 1u);
    EXPECT_EQ(function.body.size(), function.name == "second" ? 3u : 0u) << function.name;
  }
}

TEST(ParseEntry, TheEntryIsAsInTheWholeModule) {
  const Module whole = parse_functions(three, "t.ptx");
  for (size_t f = 0; f < whole.functions.size(); ++f) {
    const Module alone = parse_entry(three, "t.ptx", whole.functions[f].name);
    const Function &expected = whole.functions[f], &got = alone.functions.at(f);
    ASSERT_EQ(got.body.size(), expected.body.size());
    for (size_t i = 0; i < got.body.size(); ++i) {
      EXPECT_EQ(got.body[i].opcode, expected.body[i].opcode);
      EXPECT_EQ(got.body[i].ptx_line, expected.body[i].ptx_line);
      EXPECT_EQ(inlined_frames(alone, got.body[i].line), inlined_frames(whole, expected.body[i].line));
    }
    EXPECT_EQ(inlined_frames(alone, got.body[1].line).size(), 2u);
  }
}

/// Of what each instruction is and where it stands.
std::string placed(const Module& module, const std::string& entry) {
  std::string text;
  for (const Function& function : module.functions)
    for (const Instruction& i : function.body)
      if (function.name == entry)
        text += i.opcode + " " + std::to_string(i.ptx_line) + ":" + std::to_string(i.ptx_column) + " " +
                std::to_string(inlined_frames(module, i.line).size()) + "\n";
  return text;
}

TEST(ParseEntry, OfATextThatIsKnownEveryEntryIsTheSame) {
  PassedBodies passed;
  for (const std::string entry : {"third", "first", "second", "third", "first"})
    EXPECT_EQ(placed(parse_entry(three, "t.ptx", entry, &passed), entry),
              placed(parse_entry(three, "t.ptx", entry), entry))
        << entry;
}

TEST(ParseEntry, AModuleWithFunctionsIsReadWhole) {
  const std::string called = ".func f()\n{\nret;\n}\n";
  const Module module =
      parse_entry(preamble + called + entry_text("first", 11) + entry_text("second", 22), "t.ptx", "first");
  for (const Function& function : module.functions) EXPECT_FALSE(function.body.empty()) << function.name;
}

TEST(ParseEntry, ABodyWithoutAnEndIsAnError) {
  EXPECT_THROW(parse_entry(three.substr(0, three.find("ret")), "t.ptx", "second"), BadInput);
}

}  // namespace
}  // namespace assay::ptx
