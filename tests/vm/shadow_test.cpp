#include "src/base/vm/shadow.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace {

MemoryShadow::Area input(const char* name, uint64_t base, uint64_t bytes, uint32_t first_leaf,
                         uint32_t element_bytes) {
  MemoryShadow::Area a;
  a.name = name, a.base = base, a.bytes = bytes;
  a.is_input = true, a.first_leaf = first_leaf, a.element_bytes = element_bytes;
  return a;
}

MemoryShadow::Area workspace(const char* name, uint64_t base, uint64_t bytes) {
  MemoryShadow::Area a;
  a.name = name, a.base = base, a.bytes = bytes, a.element_bytes = 4;
  return a;
}

TEST(Shadow, AnInputsHalfDependsOnItsOwnElement) {
  MemoryShadow m;
  m.add(input("k", 0x2000, 16, 100, 2));
  m.add(input("g", 0x1000, 16, 200, 4));
  EXPECT_EQ(MemoryShadow::read(m.find(0x2006), 0x2006).dependence, kLeaf | 103u);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1006), 0x1006).dependence, kLeaf | 201u);
}

TEST(Shadow, WhatNothingWroteIsUnwrittenAndAWriteTouchesOneHalf) {
  MemoryShadow m;
  m.add(workspace("states", 0x1000, 8));
  EXPECT_EQ(MemoryShadow::read(m.find(0x1004), 0x1004).dependence, kUnwritten);
  MemoryShadow::write(m.find(0x1004), 0x1004, {3, kLeaf | 8u}, 11);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1004), 0x1004).tag, 3u);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1004), 0x1004).dependence, kLeaf | 8u);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1006), 0x1006).dependence, kUnwritten);
  m.name("states", {0x1000, 4});
  EXPECT_EQ(m.find("states", 1), (std::pair<const MemoryShadow::Area*, uint64_t>{m.find(0x1004), 0x1004}));
  EXPECT_EQ(m.find("states", 1).first->writers[2], 11);
}

TEST(Shadow, AnInputThatIsOverwrittenForgetsThatElementOnly) {
  MemoryShadow m;
  m.add(input("g", 0x1000, 16, 200, 4));
  MemoryShadow::write(m.find(0x1004), 0x1004, {0, kLeaf | 9u}, 1);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1004), 0x1004).dependence, kLeaf | 9u);
  EXPECT_EQ(MemoryShadow::read(m.find(0x1008), 0x1008).dependence, kLeaf | 202u);
}

TEST(Shadow, AnAddressOutsideEveryAreaHasNoShadow) {
  MemoryShadow m;
  m.add(workspace("states", 0x1000, 8));
  EXPECT_EQ(m.find(0x1008), nullptr);
  EXPECT_EQ(m.find(0x0fff), nullptr);
  EXPECT_EQ(MemoryShadow::read(nullptr, 0x1008).dependence, kNothing);
}

}  // namespace
}  // namespace assay::vm
