// assay trace --at: a warp's lanes at a line of a kernel.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace assay {
namespace {

/// Number of the line that stores the output of gla.chunk, a call that is inlined.
int line_of_store() {
  std::istringstream text(read_file(std::string(ASSAY_SOURCE_DIR) + "/kernels/channel/chunk_output.cuh"));
  int number = 1;
  for (std::string line; std::getline(text, line); ++number)
    if (line.find("store_pair<Format>(") != line.npos) return number;
  return 0;
}

const std::string kCase = "trace gla.chunk -T 64 -K 16 -V 15 --at channel/chunk_output.cuh:";

TEST(TraceLine, ShowsWhichElementsAStoreOfAKernelReaches) {
  const ScratchFolder folder;
  const Ran ran =
      run_assay(kCase + std::to_string(line_of_store()) + " --block 0 --warp 1 --json v.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("block (0,0,0) warp 1 of gla_chunk_output_64, visit 1 of "), ran.out.npos)
      << ran.out;
  const nlohmann::json view = nlohmann::json::parse(read_file(folder / "v.json"));
  EXPECT_EQ(view["warp"], 1);
  std::string all;
  for (const std::string visit : {"1", "last"}) {
    const Ran shown =
        run_assay(kCase + std::to_string(line_of_store()) + " --warp 1 --json - --visit " + visit, folder);
    all += nlohmann::json::parse(shown.out).dump();
  }
  EXPECT_NE(all.find("\"place\":\"o[b=0,t="), all.npos);
  EXPECT_NE(all.find("\"ulps\":"), all.npos);
}

TEST(TraceLine, OfALineWithoutInstructionsTheNearestAreNamed) {
  const ScratchFolder folder;
  const Ran ran = run_assay(kCase + "1", folder);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(
      ran.err.rfind("assay: channel/chunk_output.cuh:1: no instruction of this run stands there; the nearest "
                    "lines with instructions: ",
                    0),
      0u)
      << ran.err;
}

}  // namespace
}  // namespace assay
