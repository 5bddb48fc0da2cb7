#include <gtest/gtest.h>

#include "kernels/defect.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace apply_patch_test {

using Files = std::vector<std::pair<std::string, std::string>>;

const Files files = {{"a.cu", "one\ntwo\nthree\nfour\nfive\nsix\n"}, {"b.cu", "x\n"}};

std::string refusal(const char* patch) {
  try {
    apply_patch(files, patch);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(ApplyPatch, ReplacesInsertsAndDeletesInSeveralHunksAndFiles) {
  const Files patched = apply_patch(files,
                                    "what: prose before\n\n"
                                    "--- a/a.cu\n+++ b/a.cu\n"
                                    "@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+two and a half\n three\n"
                                    "@@ -5,2 +6,1 @@\n five\n-six\n"
                                    "--- a/b.cu\n+++ b/b.cu\n"
                                    "@@ -1,1 +1,1 @@\n-x\n+y\n");
  EXPECT_EQ(patched[0].second, "one\nTWO\ntwo and a half\nthree\nfour\nfive\n");
  EXPECT_EQ(patched[1].second, "y\n");
}

TEST(ApplyPatch, RefusesContextThatDiffers) {
  EXPECT_EQ(refusal("--- a/a.cu\n+++ b/a.cu\n@@ -1,2 +1,2 @@\n one\n-zwei\n+2\n"),
            "patch: a.cu:2 is not 'zwei'");
  EXPECT_EQ(refusal("--- a/b.cu\n+++ b/b.cu\n@@ -1,2 +1,2 @@\n x\n-gone\n"), "patch: b.cu:2 is not 'gone'");
}

TEST(ApplyPatch, RefusesUnknownFilesAndPatchesThatChangeNothing) {
  EXPECT_EQ(refusal("--- a/c.cu\n+++ b/c.cu\n@@ -1,1 +1,1 @@\n-x\n+y\n"), "patch: no file c.cu");
  EXPECT_EQ(refusal("only prose\n"), "patch: it changes nothing");
  EXPECT_EQ(refusal("--- a/b.cu\n+++ b/b.cu\n@@ nonsense @@\n"), "patch: cannot read '@@ nonsense @@'");
}

}  // namespace apply_patch_test
}  // namespace assay
