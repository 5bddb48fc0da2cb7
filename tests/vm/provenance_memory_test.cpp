#include "src/base/vm/provenance_memory.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace provenance_memory_test {

ProvenanceMemory::Origin input(uint32_t first_leaf, uint32_t element_bytes) {
  return {.is_input = true, .first_leaf = first_leaf, .element_bytes = element_bytes, .layout = {}};
}

TEST(ProvenanceMemory, AnInputsHalfDependsOnItsOwnElement) {
  ProvenanceMemory m;
  m.add("k", 0x2000, 16, input(100, 2));
  m.add("g", 0x1000, 16, input(200, 4));
  EXPECT_EQ(m.read(0x2006).dependence, kLeaf | 103u);
  EXPECT_EQ(m.read(0x1006).dependence, kLeaf | 201u);
}

TEST(ProvenanceMemory, WhatNothingWroteIsUnwrittenAndAWriteTouchesOneHalf) {
  ProvenanceMemory m;
  m.add("states", 0x1000, 8, {});
  EXPECT_EQ(m.read(0x1004).dependence, kUnwritten);
  m.write(0x1004, {3, kLeaf | 8u}, 11);
  EXPECT_EQ(m.read(0x1004).tag, 3u);
  EXPECT_EQ(m.read(0x1004).dependence, kLeaf | 8u);
  EXPECT_EQ(m.read(0x1006).dependence, kUnwritten);
  m.name("states", {0x1000, 4});
  const ProvenanceMemory::Element element = m.find("states", 1);
  ASSERT_TRUE(element.area);
  EXPECT_EQ(ProvenanceMemory::at(*element.area, element.offset).writer, 11);
}

TEST(ProvenanceMemory, AnInputThatIsOverwrittenForgetsThatElementOnly) {
  ProvenanceMemory m;
  m.add("g", 0x1000, 16, input(200, 4));
  m.write(0x1004, {0, kLeaf | 9u}, 1);
  EXPECT_EQ(m.read(0x1004).dependence, kLeaf | 9u);
  EXPECT_EQ(m.read(0x1008).dependence, kLeaf | 202u);
}

TEST(ProvenanceMemory, AnAddressOutsideEveryAreaDependsOnNothing) {
  ProvenanceMemory m;
  m.add("states", 0x1000, 8, {});
  m.write(0x1008, {3, kLeaf | 8u}, 11);
  EXPECT_EQ(m.read(0x1008).dependence, kNothing);
  EXPECT_EQ(m.read(0x0fff).dependence, kNothing);
  EXPECT_EQ(m.read(0x1006).dependence, kUnwritten);
}

}  // namespace provenance_memory_test
}  // namespace assay::vm
