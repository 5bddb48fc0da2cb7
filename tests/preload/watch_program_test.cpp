// assay watch -- PROGRAM: a program of the CUDA runtime, compiled by nvcc, with the stand-in for the GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace {

using nlohmann::json;

Ran watched(const std::string& what, const ScratchFolder& here) {
  return run_assay("watch --on vm --json w.json -- " ASSAY_BIRTHS_PROGRAM " " + what, here);
}

TEST(WatchProgram, TellsOfEachKindAtItsLineOnce) {
  const ScratchFolder here;
  const Ran ran = watched("births", here);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const json result = json::parse(read_file(here / "w.json"));
  ASSERT_EQ(result.at("births").size(), 3u) << ran.out;
  const std::pair<const char*, int> expected[] = {
      {"division by zero", 6}, {"infinity", 9}, {"infinity became NaN", 10}};
  for (size_t i = 0; i < 3; ++i) {
    const json& birth = result.at("births")[i];
    EXPECT_EQ(birth.at("kind"), expected[i].first);
    EXPECT_EQ(birth.at("line"), expected[i].second);
    EXPECT_TRUE(birth.at("file").get<std::string>().ends_with("births_program.cu"));
  }
  EXPECT_EQ(result.at("births")[0].at("example"), "0 -> inf");
  EXPECT_EQ(result.at("births")[0].at("launch"), 1);
  EXPECT_EQ(result.at("births")[1].at("count"), 62);
  EXPECT_EQ(result.at("births")[1].at("thread"), json({2, 0, 0}));
  // Told while the program runs, at its waits.
  EXPECT_NE(ran.err.find("assay: division by zero at"), ran.err.npos) << ran.err;
  EXPECT_NE(ran.out.find("3 births in 3 launches on the machine"), ran.out.npos) << ran.out;
}

TEST(WatchProgram, SaysNothingOfWhatComesIn) {
  const ScratchFolder here;
  for (const char* what : {"clean", "input"}) {
    const Ran ran = watched(what, here);
    EXPECT_EQ(ran.status, 0) << what << ran.out << ran.err;
    EXPECT_EQ(json::parse(read_file(here / "w.json")).at("births").size(), 0u) << what;
  }
}

// With --on cuda nothing stands in for the driver's library, so that the runtime must be found where it is.
TEST(WatchProgram, TakesARuntimeThatIsLoadedForOneLibraryAlone) {
  const ScratchFolder here;
  setenv("ASSAY_RUN", R"({"checks":"none"})", 1);
  const Ran ran = run_assay(
      "watch --on cuda --json w.json -- " ASSAY_LOADS_LOCALLY " " ASSAY_BIRTHS_LIBRARY " births", here);
  unsetenv("ASSAY_RUN");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_EQ(json::parse(read_file(here / "w.json")).at("births").size(), 3u) << ran.out;
}

// As on a GPU with --on cuda: the driver's functions, in front of them the watch.
TEST(WatchProgram, BirthsOfLaunchesThroughTheDriverAreThoseOfTheTrace) {
  const ScratchFolder here;
  const auto births = [&](const std::string& words) {
    return run_assay("watch --on vm --json w.json -- " ASSAY_WATCH_BIRTHS " " + words, here);
  };
  const Ran planted = births("plants 3/15");
  EXPECT_NE(planted.out.find("3 noted, 0 wrong"), planted.out.npos) << planted.out << planted.err;
  EXPECT_EQ(json::parse(read_file(here / "w.json")).at("modules"), 3);
  const Ran clean = births("clean 2 22 hgrn.chunk");
  EXPECT_NE(clean.out.find("0 births noted, 0 with other outputs"), clean.out.npos) << clean.out << clean.err;
  EXPECT_EQ(clean.status, 0) << clean.out;
}

// The program runs on with what it loaded, as it does without the watch.
TEST(WatchProgram, WhatTheDriverRefusesIsLoadedAsItIs) {
  const ScratchFolder here;
  const auto loaded = [&](const std::string& name) {
    return run_assay("watch --on cuda --json w.json -- " ASSAY_LOADS_MODULES " " + name, here);
  };
  const Ran taken = loaded("taken");
  EXPECT_NE(taken.out.find("0 0 0 0\n"), taken.out.npos) << taken.out << taken.err;
  json result = json::parse(read_file(here / "w.json"));
  EXPECT_EQ(result.at("modules"), 4);
  EXPECT_EQ(result.at("counts").at("watched"), 4);
  EXPECT_EQ(result.at("unwatched"), json::array());

  const Ran refused = loaded("refused");
  EXPECT_EQ(refused.status, 0) << refused.out << refused.err;
  EXPECT_NE(refused.out.find("0 0 0 0\n"), refused.out.npos) << refused.out << refused.err;
  const std::string why =
      "module of refused: the driver refuses it with the watch in it (error 218); it runs as it is";
  EXPECT_NE(refused.out.find("not watched: " + why), refused.out.npos) << refused.out;
  result = json::parse(read_file(here / "w.json"));
  EXPECT_EQ(result.at("modules"), 0);
  EXPECT_EQ(result.at("counts").at("watched"), 0);
  EXPECT_EQ(result.at("unwatched"), json({why}));

  // What it refuses anyway is not the watch's doing.
  const Ran never = loaded("never");
  EXPECT_NE(never.out.find("218 218 218 218\n"), never.out.npos) << never.out << never.err;
  EXPECT_EQ(json::parse(read_file(here / "w.json")).at("unwatched"), json::array());
}

TEST(WatchProgram, PtxIsWrittenWithTheWatchInIt) {
  const ScratchFolder here;
  const Ran ran = run_assay("watch " ASSAY_SOURCE_DIR "/tests/data/row_norm.ptx --output w.ptx", here);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(read_file(here / "w.ptx").find(".visible .global .align 8 .u64 assay_watch_buffer = 0;"),
            std::string::npos);
  EXPECT_EQ(run_assay("watch " ASSAY_SOURCE_DIR "/tests/data/row_norm.ptx", here).status, 2);
}

}  // namespace
}  // namespace assay
