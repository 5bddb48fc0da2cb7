#include "kernels/defect.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/module_text.h"
#include "src/numerics/bad_input.h"

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

TEST(Defect, ExpectedLineIsOneThatThePatchAdds) {
  for (const Defect& defect : defects()) {
    const size_t colon = defect.line.rfind(':');
    const std::string path = defect.line.substr(0, colon);
    const int number = std::stoi(defect.line.substr(colon + 1));
    const auto patched = apply_patch(sources(), defect.patch);
    const auto file =
        std::find_if(patched.begin(), patched.end(), [&](const auto& f) { return f.first == path; });
    ASSERT_NE(file, patched.end()) << path;
    size_t begin = 0;
    for (int line = 1; line < number; ++line) begin = file->second.find('\n', begin) + 1;
    const std::string text = file->second.substr(begin, file->second.find('\n', begin) - begin);
    EXPECT_NE(defect.patch.find("\n+" + text + "\n"), std::string::npos) << defect.name << ": " << text;
  }
}

/// Is the module the one that was built in?
bool as_built(const Plan& plan, const std::string& module) {
  for (const Module& m : plan.modules)
    if (m.name == module) return m.ptx == embedded_module(module).ptx;
  ADD_FAILURE() << module << " is not in the plan";
  return false;
}

TEST(Defect, ChangesTheModulesThatItsPatchReachesAndNoOthers) {
  setenv("ASSAY_CACHE", (testing::TempDir() + "assay-defect-cache").c_str(), 1);
  Case c;
  c.direction = "both";
  // L3 stands in a header of the backward module alone.
  const Plan plan = find_kernel("rwkv6.fused_recurrent@L3").plan(c, find_operator("rwkv6"), {});
  EXPECT_TRUE(as_built(plan, "rwkv6/fused_recurrent.bf16.fp32"));
  EXPECT_FALSE(as_built(plan, "rwkv6/fused_recurrent_backward.bf16.fp32"));
  unsetenv("ASSAY_CACHE");
}

}  // namespace
}  // namespace assay
