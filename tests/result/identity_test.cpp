#include "src/result/identity.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

Verification overflow() {
  Verification v;
  v.kernel = "gla.chunk";
  v.cause = "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:142";
  v.origin.emplace();
  v.origin->where = {"kernels/gla/chunk.cu", 142, 977, "gla_chunk"};
  v.origin->source_text = "s *= exp2f(x)  *\tmask;";
  v.diagnosis = {{"masked-lane-overflow", "", 0.6, {}}, {"other", "", 0.1, {}}};
  return v;
}

TEST(Identity, DependsOnKernelCauseAndFirstDiagnosis) {
  std::set<std::string> seen = {identity_of(overflow())};
  EXPECT_EQ(
      *seen.begin(),
      "gla.chunk/nonfinite/o/exp-overflow/kernels/gla/chunk.cu `$1 *= exp2f($2) * $3;`/masked-lane-overflow");
  const auto is_new = [&](auto change) {
    Verification v = overflow();
    change(v);
    return seen.insert(identity_of(v)).second;
  };
  EXPECT_TRUE(is_new([](auto& v) { v.kernel = "gla.fused_chunk"; }));
  EXPECT_TRUE(is_new([](auto& v) { v.cause = "nonfinite/dq/exp-overflow/kernels/gla/chunk.cu:142"; }));
  EXPECT_TRUE(is_new([](auto& v) { v.diagnosis[0].cause = "anchor-row-late"; }));
  EXPECT_TRUE(is_new([](auto& v) { v.origin->source_text = "s *= exp2f(s) * mask;"; }));
  EXPECT_TRUE(is_new([](auto& v) { v.source_shape = "$1 *= exp2f($2) * $3; #2"; })) << "the next such line";
  EXPECT_FALSE(is_new([](auto& v) { v.origin->source_text = "scores *= exp2f(up) * keep;  // renamed"; }));
  EXPECT_FALSE(is_new([](auto& v) { v.case_.seed = 99, v.case_.T = 7, v.token = "other"; }));
  EXPECT_FALSE(is_new([](auto& v) { v.diagnosis.pop_back(); }));
  EXPECT_FALSE(is_new([](auto& v) { v.origin->source_text = "  s *= exp2f(x) * mask; "; }));
}

TEST(Identity, LinesAddedAboveDoNotChangeIt) {
  Verification moved = overflow();
  moved.cause = "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:150";
  moved.origin->where.line = 150;
  EXPECT_EQ(identity_of(moved), identity_of(overflow()));
  moved.origin->source_text.clear();  // without the text the number is all there is
  EXPECT_NE(identity_of(moved), identity_of(overflow()));
}

TEST(Identity, AShapeKeepsTypesFunctionsAndMembersAndNumbersVariables) {
  EXPECT_EQ(shape_of("const float write = ks[i]*value;"), "const float $1 = $2[$3]*$4;");
  EXPECT_EQ(shape_of("  S[i] = S[i] * ws[i] + ks[i] * value;  // state"),
            "$1[$2] = $1[$2] * $3[$2] + $4[$2] * $5;");
  EXPECT_EQ(shape_of("p.scale = q->scale * ns::factor + 1.5f;"), "$1.scale = $2->scale * ns::factor + 1.5f;");
  EXPECT_NE(shape_of("a = b - c;"), shape_of("a = c - a;"));
  EXPECT_EQ(shape_of(""), "");
}

TEST(Identity, OfARaceAndATrapTheLineIsItsShapeToo) {
  Verification v;
  v.kernel = "mine", v.cause = "check/race/src/k.cu:46", v.source_shape = "$1[$2] = load($3);";
  EXPECT_EQ(identity_of(v), "mine/check/race/src/k.cu `$1[$2] = load($3);`");
  v.cause = "trap/out-of-bounds/src/k.cu:90";
  EXPECT_EQ(identity_of(v), "mine/trap/out-of-bounds/src/k.cu `$1[$2] = load($3);`");
  v.cause = "violation/o";
  EXPECT_EQ(identity_of(v), "mine/violation/o");
}

TEST(Identity, ARunWithoutAFindingHasNone) {
  EXPECT_EQ(identity_of(Verification{}), "");
}

TEST(Identity, EndsWithTheNameOfTheCauseWhereItHasOne) {
  Verification v;
  v.kernel = "gla.chunk", v.cause = "violation/o";
  EXPECT_EQ(name_in(identity_of(v), v.kernel, v.cause), "");
  v.diagnosis = {{"gate-sign", "", 0.9, {}}};
  EXPECT_EQ(name_in(identity_of(v), v.kernel, v.cause), "gate-sign");
  v.cause = "nonfinite/o/exp-overflow/src/k.cu:50", v.source_shape = "$1 = exp($2) / $3;";
  EXPECT_EQ(name_in(identity_of(v), v.kernel, v.cause), "gate-sign") << identity_of(v);
  v.diagnosis.clear();
  EXPECT_EQ(name_in(identity_of(v), v.kernel, v.cause), "") << identity_of(v);
}

TEST(Identity, FingerprintsAreThoseOfThePublishedHash) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");  // FNV-1a, 64 bits: the published test vectors
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");
}

}  // namespace
}  // namespace assay
