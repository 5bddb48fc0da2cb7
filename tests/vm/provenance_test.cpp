#include "src/base/vm/provenance.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace provenance_test {

using Leaves = std::vector<uint32_t>;

TEST(Provenance, AUnionHoldsTheElementsOfBothSidesOnce) {
  Provenance p;
  const Dependence ab = p.unite(kLeaf | 7, kLeaf | 3), abc = p.unite(ab, p.unite(kLeaf | 7, kLeaf | 9));
  EXPECT_EQ(p.collect(abc, 256).leaves, (Leaves{3, 7, 9}));
  EXPECT_FALSE(p.collect(abc, 256).truncated);
}

TEST(Provenance, NothingAndEqualSidesMakeNoUnion) {
  Provenance p;
  EXPECT_EQ(p.unite(kNothing, kLeaf | 1), kLeaf | 1);
  EXPECT_EQ(p.unite(kLeaf | 1, kNothing), kLeaf | 1);
  EXPECT_EQ(p.unite(kLeaf | 1, kLeaf | 1), kLeaf | 1);
  EXPECT_TRUE(p.collect(kNothing, 256).leaves.empty());
}

TEST(Provenance, AnUnwrittenValueIsNotAnElement) {
  Provenance p;
  const Provenance::Elements found = p.collect(p.unite(kUnwritten, kLeaf | 4), 256);
  EXPECT_TRUE(found.unwritten);
  EXPECT_EQ(found.leaves, Leaves{4});
}

TEST(Provenance, ATruncatedSetHoldsTheNewestElements) {
  Provenance p;
  Dependence d = kNothing;
  for (uint32_t i = 0; i < 100; i++) d = p.unite(d, kLeaf | i);
  const Provenance::Elements found = p.collect(d, 3);
  EXPECT_TRUE(found.truncated);
  EXPECT_EQ(found.leaves, (Leaves{97, 98, 99}));
}

TEST(Provenance, UnionsOlderThanTheCapacityAreForgotten) {
  Provenance p(8);
  const Dependence old = p.unite(kLeaf | 1, kLeaf | 2);
  for (uint32_t i = 0; i < 8; i++) p.unite(kLeaf | (10 + i), kLeaf | (20 + i));
  EXPECT_TRUE(p.collect(old, 256).truncated);
  EXPECT_TRUE(p.collect(old, 256).leaves.empty());
}

}  // namespace provenance_test
}  // namespace assay::vm
