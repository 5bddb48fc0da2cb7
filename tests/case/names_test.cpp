#include "src/case/names.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Names, TheNearestNameIsOfferedAndElseTheList) {
  const std::vector<std::string> known{"gla.chunk", "gla.fused_recurrent"};
  EXPECT_EQ(unknown_name("kernel", "gla.chnk", known),
            "unknown kernel 'gla.chnk': did you mean 'gla.chunk'?");
  EXPECT_EQ(unknown_name("kernel", "gla.fused_reccurent", known),
            "unknown kernel 'gla.fused_reccurent': did you mean 'gla.fused_recurrent'?");
  EXPECT_EQ(unknown_name("kernel", "rwkv6.scan", known),
            "unknown kernel 'rwkv6.scan': there are gla.chunk, gla.fused_recurrent");
  EXPECT_EQ(unknown_name("kernel", "x", {}), "unknown kernel 'x': there are none");
  EXPECT_EQ(unknown_name("option", "sot", {"set"}), "unknown option 'sot': did you mean 'set'?");
  EXPECT_EQ(unknown_name("option", "SET", {"set"}), "unknown option 'SET': did you mean 'set'?");
  EXPECT_EQ(unknown_name("option", "wat", {"set"}), "unknown option 'wat': there is set");
}

}  // namespace
}  // namespace assay
