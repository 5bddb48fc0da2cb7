#include "kernels/defect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include "kernels/compile_ptx.h"
#include "kernels/module_text.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

std::vector<std::pair<std::string, std::string>> sources() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const SourceFile& file : embedded_sources()) result.emplace_back(file.path, file.text);
  return result;
}

TEST(Defect, SaysWhatSinceWhenWhyAndWhere) {
  EXPECT_GE(defects().size(), 3u);
  for (const Defect& defect : defects())
    for (const std::string& field : {defect.what, defect.since, defect.cause, defect.line})
      EXPECT_FALSE(field.empty()) << defect.kernel << '@' << defect.name;
}

/// Line `number` of a file of the tree; nothing where there is none.
std::optional<std::string> line_of(const SourceTree& tree, const std::string& path, int number) {
  const auto file = std::find_if(tree.begin(), tree.end(), [&](const auto& f) { return f.first == path; });
  if (file == tree.end()) return std::nullopt;
  std::istringstream text(file->second);
  std::string line;
  for (int i = 0; i < number; ++i)
    if (!std::getline(text, line)) return std::nullopt;
  return line;
}

TEST(Defect, ExpectedLinesAreThereAndThePatchAddsOneOfThem) {
  for (const Defect& defect : defects()) {
    const auto patched = apply_patch(sources(), defect.patch);
    bool added = false;
    for (const LineRange& range : expected_lines(defect))
      for (int number = range.first; number <= range.last; ++number) {
        const std::optional<std::string> line = line_of(patched, range.file, number);
        ASSERT_TRUE(line) << defect.id() << ": " << range.file << ':' << number;
        added |= defect.patch.find("\n+" + *line + "\n") != std::string::npos;
      }
    EXPECT_TRUE(added) << defect.id() << ": " << defect.line;
  }
}

/// One hunk that changes a line, one that moves a line before another: what was taken away stood between two.
TEST(Defect, KnowsTheLinesThatItsPatchChanges) {
  Defect defect;
  defect.patch =
      "what: it\n\n--- a/kernels/a.cuh\n+++ b/kernels/a.cuh\n@@ -10,3 +10,4 @@ void f() {\n "
      "one\n-two\n+2\n+3\n"
      " three\n@@ -30,4 +31,4 @@\n one\n+moved\n two\n-moved\n three\n";
  const std::vector<LineRange> lines = patched_lines(defect);
  ASSERT_EQ(lines.size(), 3u);
  for (const LineRange& range : lines) EXPECT_EQ(range.file, "kernels/a.cuh");
  EXPECT_EQ(std::pair(lines[0].first, lines[0].last), std::pair(11, 12));
  EXPECT_EQ(std::pair(lines[1].first, lines[1].last), std::pair(32, 32));
  EXPECT_EQ(std::pair(lines[2].first, lines[2].last), std::pair(33, 34));
}

TEST(Defect, ReadsCausesAndLinesFromTheFirstLines) {
  Defect defect;
  defect.kernel = "gla.chunk", defect.name = "S1";
  defect.cause = "data-race or unwritten-value: blocks: overwrite one another";
  EXPECT_EQ(expected_causes(defect), (std::vector<std::string>{"data-race", "unwritten-value"}));
  defect.line = "kernels/a.cuh:12-14, kernels/b.cu:7";
  const std::vector<LineRange> lines = expected_lines(defect);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].file, "kernels/a.cuh");
  EXPECT_EQ(lines[0].first, 12);
  EXPECT_EQ(lines[0].last, 14);
  EXPECT_EQ(lines[1].file, "kernels/b.cu");
  EXPECT_EQ(lines[1].last, 7);
  for (const char* wrong : {"kernels/a.cuh", "kernels/a.cuh:", "kernels/a.cuh:9-3", "kernels/a.cuh:x", ""}) {
    defect.line = wrong;
    EXPECT_THROW(expected_lines(defect), BadInput) << wrong;
  }
}

TEST(Defect, ReadsFingerprintsWhereThereAreAny) {
  Defect defect;
  EXPECT_TRUE(expected_fingerprints(defect).empty());
  defect.fingerprint = "db does not depend on k or db depends on v";
  EXPECT_EQ(expected_fingerprints(defect),
            (std::vector<std::string>{"db does not depend on k", "db depends on v"}));
}

TEST(Defect, NamesItsCausesAsCausesAreSpelt) {
  for (const Defect& defect : defects())
    for (const std::string& cause : expected_causes(defect))
      EXPECT_TRUE(std::all_of(cause.begin(), cause.end(),
                              [](char c) { return std::islower(c) || std::isdigit(c) || c == '-'; }) &&
                  cause.find('-') != cause.npos)
          << defect.id() << ": '" << cause << "'";
}

/// Is the module the one that was built in?
bool as_built(const Program& plan, const std::string& module) {
  for (const Module& m : plan.modules)
    if (m.name == module) return m.ptx == kernel_module(module).ptx;
  ADD_FAILURE() << module << " is not in the plan";
  return false;
}

TEST(Defect, ChangesTheModulesThatItsPatchReachesAndNoOthers) {
  Case c;
  c.direction = Direction::both;
  // L3 stands in a header of the backward module alone.
  const Program plan =
      find_kernel("rwkv6.fused_recurrent@L3").plan(resolve_unchecked(c, find_operator("rwkv6")), {});
  EXPECT_TRUE(as_built(plan, "rwkv6/fused_recurrent.bf16.fp32"));
  EXPECT_FALSE(as_built(plan, "rwkv6/fused_recurrent_backward.bf16.fp32"));
}

}  // namespace
}  // namespace assay
