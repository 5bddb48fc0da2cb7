// Which sums of wgmma can be read behind a wait that leaves later groups in flight.
#include "src/base/watch/finished_wgmma.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::watch {
namespace finished_wgmma_test {

/// A product into the four registers from %f<first> on.
std::string product(int first) {
  std::string sums;
  for (int i = 0; i < 4; ++i) sums += (i ? ",%f" : "%f") + std::to_string(first + i);
  return "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" + sums + "}, %rd0, %rd0, 1, 1, 1, 0, 0;\n";
}
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
std::string wait(int left) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(left) + ";\n";
}

/// How many products each wait in the text ends that does not wait for all.
std::vector<size_t> finished(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<16>;\n"
      ".reg .b64 %rd<1>;\n.reg .pred %p<1>;\n" +
      body + "ret;\n}\n";
  const ptx::Module module = ptx::parse(text, "f.ptx");
  std::vector<size_t> counts;
  for (const auto& [at, products] : finished_wgmma(module.functions[0])) counts.push_back(products.size());
  return counts;
}

using Counts = std::vector<size_t>;

TEST(FinishedWgmma, AreThoseOfAllButTheLatestGroups) {
  const std::string two = product(0) + product(0) + kCommit + product(4) + kCommit;
  EXPECT_EQ(finished(two + wait(1)), Counts{2});
  EXPECT_EQ(finished(two + wait(2)), Counts{0});
  EXPECT_EQ(finished(two + product(8) + kCommit + wait(1)), Counts{3});
  EXPECT_EQ(finished(two + wait(1) + wait(1)), (Counts{2, 0}));
  EXPECT_EQ(finished(two + wait(0)), Counts{});
}

TEST(FinishedWgmma, AreReadInNoRegistersThatOneInFlightAddsTo) {
  EXPECT_EQ(finished(product(0) + kCommit + product(2) + kCommit + wait(1)), Counts{0});
}

TEST(FinishedWgmma, AreThoughtSoOnlyIfEveryWayCommitsAfterThem) {
  const std::string begin = product(0) + kCommit;
  EXPECT_EQ(finished(begin + "@%p0 bra $over;\n" + kCommit + "$over:\n" + wait(1)), Counts{0});
  EXPECT_EQ(finished(begin + "$again:\n@%p0 bra $again;\n" + product(4) + kCommit + wait(1)), Counts{1});
  EXPECT_EQ(finished("@%p0 bra $over;\n" + begin + "$over:\n" + product(4) + kCommit + wait(1)), Counts{0});
  EXPECT_EQ(finished("@%p0 " + product(0) + kCommit + product(4) + kCommit + wait(1)), Counts{0});
  // A product that the loop issued before, and issues again.
  EXPECT_EQ(finished("$again:\n" + begin + wait(1) + "@%p0 bra $again;\n"), Counts{0});
}

}  // namespace finished_wgmma_test
}  // namespace assay::watch
