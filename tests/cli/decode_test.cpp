// assay decode: what a module holds, and what the machine lacks of it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace assay {
namespace decode_test {

constexpr const char* kText = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "k.cu"
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .f32 %f<6>;
.reg .b64 %rd<3>; .reg .b32 %r<5>;
.loc 1 10 1
ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
fma.rn.f32 %f5, %f1, %f2, %f3;
BODY
ret;
}
)";

std::string with(const std::string& body) {
  std::string text = kText;
  return text.replace(text.find("BODY"), 4, body);
}

TEST(Decode, TellsWhatEachInstructionReadsAndWrites) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << with("");
  const Ran ran = run_assay("decode k.ptx --signatures --json k.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("ld.global.v4.f32  k.cu:10"), ran.out.npos) << ran.out;
  EXPECT_NE(ran.out.find("load; reads %rd1; writes %f1 %f2 %f3 %f4; read 16 bytes global"), ran.out.npos)
      << ran.out;
  const nlohmann::json module = nlohmann::json::parse(read_file(folder / "k.json"))["files"][0]["modules"][0];
  const nlohmann::json entry = module["functions"][0];
  EXPECT_EQ(entry["instructions"][1]["signature"]["operation"], "fma");
  EXPECT_EQ(entry["instructions"][1]["signature"]["status"]["sm_80"], "exact");
}

TEST(Decode, ListsWhatTheMachineLacksAndGoesOn) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx") << with("tcgen05.wait::ld.sync.aligned;");
  const Ran ran = run_assay("decode k.ptx", folder);
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_NE(ran.out.find("tcgen05.wait::ld.sync.aligned  1 times, first on line 12"), ran.out.npos)
      << ran.out;
  EXPECT_NE(ran.out.find("ret"), ran.out.npos);
}

TEST(Decode, ShowsOfEachEntryParametersMemoryAndForms) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx")
      << ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 pool[];\n"
         ".visible .entry k(.param .align 8 .b8 p[24], .param .u32 n)\n.maxntid 128, 2\n{\n"
         ".shared .b8 tile[64]; .local .b8 kept[32]; .reg .b32 %r<5>; .reg .b64 %rd<3>;\n"
         "ldmatrix.aligned.sync.m8n8.x1.b16.shared {%r1}, [%r2];\nret;\n}\n";
  const Ran ran = run_assay("decode k.ptx --json k.json", folder);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const nlohmann::json entry =
      nlohmann::json::parse(read_file(folder / "k.json"))["files"][0]["modules"][0]["entries"][0];
  EXPECT_EQ(entry["parameters"][0]["bytes"], 24);
  EXPECT_EQ(entry["parameters"][0]["alignment"], 8);
  EXPECT_EQ(entry["parameters"][1]["offset"], 24);
  EXPECT_EQ(entry["shared_bytes"], 64);
  EXPECT_EQ(entry["local_bytes"], 32);
  EXPECT_TRUE(entry["dynamic_shared"]);
  EXPECT_EQ(entry["most_threads"], 256);
  EXPECT_EQ(entry["instructions"], 2);
  EXPECT_EQ(entry["forms"][0]["form"], "ldmatrix.sync.aligned.m8n8.x1.shared.b16");
  EXPECT_EQ(entry["forms"][0]["status"]["sm_89"], "exact");
  EXPECT_EQ(ran.out.find("  ldmatrix.aligned"), ran.out.npos) << "no listing unless it is asked for";
}

TEST(Decode, ARefusedEntryRefusesNoOther) {
  const ScratchFolder folder;
  std::ofstream(folder / "k.ptx")
      << with("") << ".visible .entry unread()\n{\nunknown construct\n}\n"
      << ".visible .entry lacking()\n{\ntcgen05.wait::ld.sync.aligned;\ntcgen05.wait::ld.sync.aligned;\n"
         "ret;\n}\n";
  std::ofstream(folder / "cut.ptx") << with("").substr(0, 200);
  const Ran ran = run_assay("decode k.ptx cut.ptx --json k.json", folder);
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("3 entries of 2 files, 3 refused"), ran.out.npos) << ran.out;
  const nlohmann::json files = nlohmann::json::parse(read_file(folder / "k.json"))["files"];
  const nlohmann::json& entries = files[0]["modules"][0]["entries"];
  ASSERT_EQ(entries[2]["refused"].size(), 1U) << ran.out;
  EXPECT_TRUE(entries[0]["refused"].empty());
  EXPECT_EQ(entries[1]["refused"][0]["function"], "unread");
  EXPECT_EQ(entries[2]["refused"][0]["count"], 2);
  EXPECT_NE(files[1]["refused"].get<std::string>().find("cut.ptx:"), std::string::npos);
}

TEST(Decode, OpensFatBinaries) {
  const ScratchFolder folder;
  const std::string data = std::string(ASSAY_SOURCE_DIR) + "/tests/data/fatbin/";
  for (const char* packed : {"plain", "zstd", "lz4"}) {
    const Ran ran = run_assay("decode " + data + packed + ".fatbin", folder);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("4 entries of 1 files, 0 refused"), ran.out.npos) << ran.out;
  }
}

}  // namespace decode_test
}  // namespace assay
