#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/base/tensor/npy.h"
#include "src/base/tensor/safetensors.h"
#include "src/result/verification.h"
#include "tests/cli/program.h"

namespace assay {
namespace {

constexpr const char* kSmall = " -B 1 -T 20 -H 1 -K 16 -V 8 --backend vm ";

Tensor random_like(const std::string& name, Dtype dtype, std::vector<int64_t> shape, double size) {
  std::vector<Axis> axes;
  for (int64_t s : shape) axes.push_back({"", s});
  Tensor tensor(name, dtype, axes);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, size * static_cast<double>(i * 37 % 19 + 1) / 19);
  return tensor;
}

/// Inputs of gla: B=1, T=20, H=2, K=16, V=8.
TensorMap inputs(Dtype dtype = Dtype::bf16) {
  TensorMap tensors;
  tensors["q"] = random_like("q", dtype, {1, 20, 2, 16}, 1);
  tensors["k"] = random_like("k", dtype, {1, 20, 2, 16}, -1);
  tensors["v"] = random_like("v", dtype, {1, 20, 2, 8}, 1);
  tensors["g"] = random_like("g", Dtype::fp32, {1, 20, 2, 16}, -1);
  tensors["initial_state"] = random_like("initial_state", Dtype::fp32, {1, 2, 16, 8}, 1);
  return tensors;
}

TEST(Cli, ExitStatusAndMessageOfEveryKindOfBadInput) {
  const ScratchFolder here;
  write_file(here / "cut.safetensors", "12");
  write_file(here / "text.json", "{]");
  write_file(here / "other.json", "{\"schema\": 99, \"kind\": \"verification\"}");
  TensorMap exchanged = inputs();
  exchanged["initial_state"] = random_like("initial_state", Dtype::fp32, {1, 2, 8, 16}, 1);
  write_safetensors(here / "exchanged.safetensors", exchanged);
  TensorMap lacking = inputs();
  lacking.erase("v");
  write_safetensors(here / "lacking.safetensors", lacking);
  TensorMap unknown = inputs();
  unknown["gk"] = unknown["g"];
  write_safetensors(here / "unknown.safetensors", unknown);
  TensorMap mixed = inputs();
  mixed["k"] = random_like("k", Dtype::fp16, {1, 20, 2, 16}, 1);
  write_safetensors(here / "mixed.safetensors", mixed);
  TensorMap positive = inputs();
  positive["g"].set(5, 0.25);
  write_safetensors(here / "positive.safetensors", positive);

  const std::pair<std::string, const char*> table[] = {
      {"", "subcommand is required"},
      {"verfy gla.chunk", "unknown subcommand 'verfy': did you mean 'verify'?"},
      {"verify gla.chunk --seed -3", "--seed"},
      {"mutate gla.chunk --mutants 0", "--mutants"},
      {"mutate gla.chunk --fail-under 120", "--fail-under: write a percentage"},
      {"mutate gla.chunk --direction sideways", "unknown direction 'sideways'"},
      {"verify gla.chunk/B1/T9", "is the token of a case, and a kernel is asked; assay replay runs it"},
      {"verify gla.chunk --mutant nonsense", "write it as MODULE+LINE+OPERATOR"},
      {"fuzz gla.chunk --mutant nonsense --cases 1", "write it as MODULE+LINE+OPERATOR"},
      {"fuzz gla --mutant nonsense --cases 1", "--mutant is of one kernel, and gla names"},
      {"fuzz gla.chunk%nonsense --cases 1", "write it as MODULE+LINE+OPERATOR"},
      {"fuzz gla.chunk%gla+chunk.bf16.fp32+1+fma-to-mul --cases 1", "1+fma-to-mul"},
      {"trace gla.chunk/T9/X9", "token field 'X9' is not known"},
      {"trace gla.chunk/T9 -T 8", "--length and a token: the token says the whole case"},
      {"verify", "no kernel given"},
      {"verify gla.chnk", "did you mean 'gla.chunk'?"},
      {"verify gla.chunk --no-such-option", "--no-such-option"},
      {"verify gla.chunk -T many", "many"},
      {"verify gla.chunk -T -1", "T = -1: must be at least 0"},
      {"verify gla.chunk -K 0", "K = 0: must be at least 1"},
      {"verify gla.chunk -K 257", "K = 257 is beyond its limit"},
      {"verify gla.chunk -T 100000000000", "at most 2^40"},
      {"verify gla.chunk -T 4000000000", "GiB of memory"},
      {"verify gla.chunk --cu-seqlens 0,9,5", "must not decrease"},
      {"verify gla.chunk --cu-seqlens 0,9 -T 10", "must end at T = 10"},
      {"verify gla.chunk --dtype fp64", "dtype fp64"},
      {"verify gla.chunk --dtype bf61", "unknown number format 'bf61'"},
      {"verify gla.chunk --decay laddr", "did you mean 'ladder'?"},
      {"verify gla.chunk --values exact --decay mild", "nothing may decay"},
      {"verify gla.chunk --layout head-first", "did you mean 'heads-first'?"},
      {"verify gla.chunk -H 2 --layout q=64:64:64:1", "strides of q: "},
      {"verify gla.chunk --layout initial_state=joined", "needs a token axis before others"},
      {"verify gla.chunk --layout padded --blocks 0", "leave one out"},
      {"verify gla.chunk --without q", "unknown optional input of gla 'q'"},
      {"verify gla.chunk --final-state-gradient", "add --direction backward"},
      {"verify gla.chunk --backend gpu", "unknown backend 'gpu'"},
      {"verify gla.chunk --backend vm --arch sm_42", "sm_42"},
      {"verify gla.chunk --set 'g[0,99,0,0]=1'", "no such element"},
      {"verify gla.chunk --ptx a.ptx", "give one of them"},
      {"verify --ptx a.ptx", "--ptx needs a --plan"},
      {"verify --ptx a.ptx --plan b.json", "b.json"},
      {"verify gla.chunk --inputs gone.safetensors", "gone.safetensors: cannot be opened"},
      {"verify gla.chunk --inputs cut.safetensors", "not a safetensors file"},
      {"verify gla.chunk --inputs exchanged.safetensors",
       "initial_state: expected [N=1,H=2,K=16,V=8], got [1,2,8,16] (transposed: K and V look exchanged; "
       "give --layout initial_state=transposed)"},
      {"verify gla.chunk --inputs lacking.safetensors", "no tensor 'v', which gla needs"},
      {"verify gla.chunk --inputs unknown.safetensors", "unknown input or output of gla 'gk'"},
      {"verify gla.chunk --inputs unknown.safetensors --map g=gkk", "did you mean 'gk'?"},
      {"verify gla.chunk --inputs unknown.safetensors --map g=gk", "has a tensor g of its own"},
      {"verify gla.chunk --inputs unknown.safetensors --map g", "write it as q=query_states"},
      {"verify gla.chunk --map q=query", "give it with --inputs"},
      {"verify gla.chunk --inputs mixed.safetensors", "k: expected bf16 (as q), got fp16"},
      {"verify gla.chunk --inputs positive.safetensors -T 20", "--length and --inputs"},
      {"verify gla.chunk --inputs positive.safetensors --backend vm", "= 0.25"},
      {std::string("verify gla.chunk --decay constant:1") + kSmall, "a log decay must lie in [-10000, 0]"},
      {std::string("verify gla.chunk --decay=-inf") + kSmall, "a log decay must lie in [-10000, 0]"},
      {"replay gla.chunk/X9", "token field 'X9' is not known"},
      {"replay gla.chnk/T9", "did you mean 'gla.chunk'?"},
      {"trace gla.chunk --element 'o[0,99,0,0]'", "T = '99' is not below 64"},
      {"trace gla.chunk --element 'p[0,0,0,0]'", "unknown output of gla 'p'"},
      {"trace gla.chunk --element 'o[0,1,0,0]' --first", "--element excludes --first"},
      {"trace gla.chunk --element o", "write it as o[0,16,0,3]"},
      {"trace gla.chunk --element 'o[0,1,0]'", "element 'o[0,1,0]'"},
      {"trace gla.chunk --depth 0", "--depth: 0 is not a whole number from 1 to"},
      {"merge gone.json --out all.json", "gone.json: cannot be opened"},
      {"merge text.json --out all.json", "neither a result in JSON nor an assay.db"},
      {"merge text.json ./text.json --out all.json", "named twice"},
      {"merge other.json --out all.json", "of kind 'verification'"},
      {"fuzz gla.chunk --shard 2/4", "give all shards one --seed"},
      {"fuzz gla.chunk --seed 1 --shard 5/4", "'5/4' is not one of 1/N to N/N"},
      {"sweep gla.chunk --over length=4 --shard 2/2", "fewer points than shards"},
      {"mutate gla.chunk --again gone.json", "gone.json: cannot be opened"},
      {"mutate gla.chunk --again other.json", "--again other.json: no result of assay mutate gla.chunk"},
      {"mutate gla.chunk --shard 0/2", "'0/2' is not one of"},
      {"defects --shard x", "'x' is not one of"},
      {"report gone.json", "gone.json: cannot be opened"},
      {"report text.json", "neither a result in JSON nor an assay.db"},
      {"report other.json", "schema"},
      {"verify gla.chunk --seed 18446744073709551616",
       "is not a whole number from 0 to 18446744073709551615"},
      {"verify gla.chunk --threads 100000", "--threads: 100000 is not a whole number from 1 to 1024"},
      {"verify gla.chunk --scale 1e300", "scale 1e+300"},
      {"verify gla.chunk --rates 1", "--rates: gla has none"},
      {"verify gla.chunk --rates 2", "--rates: gla has none"},
      {"replay gla.chunk/T16/K8/V8/rates-1", "rates: gla has none"},
      {"verify delta_rule.chunk --without beta", "--without beta,beta_v leaves out both"},
      {"fuzz gla --jobs 100000", "--jobs: 100000 is not a whole number from 1 to 1024"},
      {"verify rwkv7_log_decay.fused --scale 2", "scale: rwkv7_log_decay has none; leave --scale out"},
      {"fuzz gla --cases 0", "--cases: 0 is not a whole number from 1 to"},
      {"fuzz gla --seed -1", "--seed: -1 is not a whole number"},
      {"list kernls", "did you mean 'kernels'?"},
      {"list kernels --json --markdown", "excludes"},
      {"defects gla.chnk", "did you mean 'gla.chunk'?"},
      {"defects gla.chunk@S7", "unknown kernel or operator with known defects 'gla.chunk@S7'"},
      {"defects gla.chunk@S1,gla.chunk@S7", "known defects 'gla.chunk@S7'"},
      {"defects gla --cases 0", "--cases: 0 is not a whole number from 1 to"},
      {"defects gla --json text.json", "text.json: not what 'assay defects --json' writes"},
      {"defects gla --tokens gone/tokens.txt", "gone/tokens.txt: cannot be written"},
      {"defects --check text.json", "is not TOKEN CAUSE DIGEST"},
      {"defects --check gone.txt", "gone.txt: cannot be opened"},
  };
  for (const auto& [arguments, message] : table) {
    const Ran ran = run_assay(arguments, here);
    EXPECT_EQ(ran.status, 2) << arguments << "\n" << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << arguments << ": " << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << arguments << ": " << ran.err;
    EXPECT_TRUE(ran.err.starts_with("assay: ")) << ran.err;
  }
}

TEST(Cli, VersionAndHelpGoToStandardOutput) {
  const ScratchFolder here;
  EXPECT_TRUE(run_assay("--version", here).out.starts_with("assay 0."));
  for (const char* arguments : {"--help", "verify --help", "fuzz --help", "list --help", "defects --help"}) {
    const Ran ran = run_assay(arguments, here);
    EXPECT_EQ(ran.status, 0) << arguments;
    EXPECT_NE(ran.out.find("Usage"), std::string::npos) << arguments;
  }
}

TEST(Cli, TraceSaysHowFarACleanKernelIsFromTheEdgeAndWhichLinesRound) {
  const ScratchFolder here;
  const Ran ran = run_assay("trace gla.chunk --backend vm -T 40 -H 1 -K 16 -V 16 --json trace.json", here);
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* text : {"against its own exact arithmetic", "made by the roundings of", "cvt.rn.bf16",
                           "ex2.approx.ftz.f32 at ", "saw up to 0: safe"})
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
  const std::string section = ran.out.substr(ran.out.find("against its own"));
  EXPECT_LE(std::count(section.begin(), section.end(), '\n'), 15) << section;
  const auto shadow = nlohmann::json::parse(read_file(here / "trace.json")).at("shadow");
  EXPECT_GT(shadow.at("lines").size(), 5u);
  EXPECT_GT(shadow.at("outputs").at(0).at("rms_error").get<double>(), 0);
  EXPECT_TRUE(nlohmann::json::parse(run_assay("verify gla.chunk --backend vm -T 3 --json -", here).out)
                  .at("shadow")
                  .is_null());
}

TEST(Cli, TraceShowsWhatStandsBehindAFiniteElement) {
  const ScratchFolder here;
  const std::string run = "trace gla.chunk --backend vm -T 100 -H 2 -K 16 -V 16 --element 'o[0,90,1,3]' ";
  const Ran ran = run_assay(run + "--depth 2 --json trace.json", here);
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* text : {"behind o[b=0,t=90,h=1,v=3] = ", "instruction instances on", "q: 16 elements",
                           "g: 1456 elements, g[b=0,t=0,h=1,k=0] to g[b=0,t=90,h=1,k=15]",
                           "blocks were run again", "more (--depth)"})
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
  const auto slice = nlohmann::json::parse(read_file(here / "trace.json")).at("slice");
  EXPECT_EQ(slice.at("element"), "o[b=0,t=90,h=1,v=3]");
  EXPECT_GT(slice.at("chain").size(), 2u);
  EXPECT_EQ(slice.at("nodes").at(0).at("line").is_number(), true);
}

TEST(Cli, TraceListsEveryDistinctOriginAndFindsTheFirst) {
  const ScratchFolder here;
  const std::string defect = "trace gla.chunk@S2a --backend vm -T 80 -H 1 -K 64 -V 16 --decay extreme ";
  const Ran all = run_assay(defect + "--all --first --json trace.json", here);
  EXPECT_EQ(all.status, 1) << all.err;
  EXPECT_NE(all.out.find("distinct origin"), std::string::npos) << all.out;
  const auto json = nlohmann::json::parse(read_file(here / "trace.json"));
  ASSERT_GE(json.at("origins").size(), 1u);
  EXPECT_EQ(json.at("origins").at(0).at("origin").at("kind"), "exp-overflow");
  int64_t grouped = 0, nonfinite = 0;
  for (const auto& group : json.at("origins")) grouped += group.at("elements").get<int64_t>();
  for (const auto& output : json.at("outputs")) nonfinite += output.at("nonfinite").get<int64_t>();
  EXPECT_EQ(grouped, nonfinite);
}

TEST(CliCampaign, TraceSaysThatTheFormulaDiffersWhereRoundingDoesNotExplainAValue) {
  const ScratchFolder here;
  const Ran ran =
      run_assay("trace gla.fused_recurrent@D1 --backend vm -T 30 -H 1 -K 16 -V 8 --decay none", here);
  EXPECT_EQ(ran.status, 1) << ran.err;
  for (const char* text : {"behind ", "formula-differs", "do not depend on",
                           "without any rounding the kernel's instructions give"})
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
}

TEST(Cli, TraceAndReplayTakeATokenAlike) {
  const ScratchFolder here;
  const std::string token = "gla.fused_recurrent/B1/T5/H1/K4/V4/fp32/g-fp32/mild/s17";
  const Ran traced = run_assay("trace " + token + " --backend vm --json t.json", here);
  EXPECT_EQ(traced.status, 0) << traced.err;
  const Ran replayed = run_assay("replay " + token + " --backend vm --json r.json", here);
  const auto read = [&](const char* file) {
    return verification_from_json(nlohmann::json::parse(read_file(here / file)));
  };
  EXPECT_EQ(read("t.json").token, token);
  EXPECT_EQ(read("t.json").case_, read("r.json").case_);
}

TEST(Cli, EveryTableIsListedInEveryForm) {
  const ScratchFolder here;
  for (const std::string what : {"operators", "kernels", "instructions", "causes", "properties", "decays"}) {
    const Ran text = run_assay("list --wide " + what, here), json = run_assay("list --json " + what, here);
    const Ran markdown = run_assay("list --markdown " + what, here);
    EXPECT_EQ(text.status, 0) << what << text.err;
    const auto document = nlohmann::json::parse(json.out);
    const size_t rows = document.at("rows").size();
    EXPECT_GT(rows, 0) << what;
    const int64_t note = document.contains("note");
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 1 + static_cast<int64_t>(rows) + note)
        << what;
    EXPECT_EQ(std::count(markdown.out.begin(), markdown.out.end(), '\n'),
              2 + static_cast<int64_t>(rows) + 2 * note)
        << what;
  }
  EXPECT_NE(run_assay("list kernels", here).out.find("GPU: "), std::string::npos);
}

TEST(Cli, TablesAndHelpFitAHundredColumnsWhereNoTerminalSays) {
  const ScratchFolder here;
  for (const std::string what :
       {"list operators", "list kernels", "list decays", "fuzz --help", "verify --help"}) {
    std::istringstream lines(run_assay(what, here).out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.size() <= 100 || line.find(' ', 30) == line.npos || line.starts_with("  assay "))
          << what << ": " << line;
  }
}

TEST(Cli, EveryCommandsHelpEndsWithTwoExamplesOfIt) {
  const ScratchFolder here;
  for (const std::string command :
       {"list", "verify", "inspect", "fuzz", "defects", "mutate", "trace", "replay", "sweep", "report",
        "decode", "arithmetic", "check", "run", "capsule", "merge"}) {
    const std::string help = run_assay(command + " --help", here).out;
    const size_t examples = help.find("Examples:\n");
    ASSERT_NE(examples, help.npos) << command;
    size_t count = 0;
    for (size_t at = examples; (at = help.find("\n  assay " + command + " ", at)) != help.npos; ++at) ++count;
    EXPECT_EQ(count, 2u) << command;
  }
}

TEST(Cli, SaysWhatWasMeant) {
  const ScratchFolder here;
  write_file(here / "k.cu", "__global__ void f() {}");
  write_file(here / "x.pt", "PK");
  const std::pair<std::string, const char*> table[] = {
      {"verify gla.chunk --lenght 5", "unknown option '--lenght': did you mean '--length'?"},
      {"verify gla.chunk --dtype float16", "unknown number format 'float16': it is called fp16 here"},
      {"verify gla", "gla is an operator: name one of its kernels: gla.chunk, "},
      {"verify gla.chunk --inputs x.pt", "PyTorch's own format"},
      {"verify --ptx k.cu --plan " ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json",
       "CUDA C++, not PTX: compile it"},
      {"fuzz gla.fused_recurrent --cases 1 --sarif gone/x.sarif", "there is no folder gone"},
      {"fuzz gla.fused_recurrent --cases 1 --source-root gone", "--source-root gone: no folder"},
  };
  for (const auto& [arguments, part] : table) {
    const Ran ran = run_assay(arguments, here);
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_NE(ran.err.find(part), std::string::npos) << arguments << ": " << ran.err;
  }
}

TEST(Cli, OneRunFuzzesSeveralKernelsOfOnesOwnAndOurs) {
  const ScratchFolder here;
  nlohmann::json plan =
      nlohmann::json::parse(read_file(ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json"));
  for (const char* name : {"one", "two"}) {
    plan["name"] = name;
    write_file(here / (std::string(name) + ".json"), plan.dump());
  }
  const std::string ptx = ASSAY_SOURCE_DIR "/tests/data/gla_naive.ptx";
  const Ran ran = run_assay("fuzz merge_heads.fused --ptx " + ptx + " --plan one.json --ptx " + ptx +
                                " --plan two.json --cases 6 --seed 1 --backend vm --db '' --json x.json",
                            here);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto document = nlohmann::json::parse(read_file(here / "x.json"));
  EXPECT_EQ(document.at("kernels"), (std::vector<std::string>{"one", "two", "merge_heads.fused"}));
  const Ran few =
      run_assay("fuzz merge_heads.fused --cases 2 --min-cases 3 --seed 1 --backend vm --db ''", here);
  EXPECT_EQ(few.status, 1);
  EXPECT_NE(few.out.find("inconclusive"), std::string::npos) << few.out;
}

TEST(CliCampaign, ACleanCasePassesForEveryKernelAndFormat) {
  const ScratchFolder here;
  for (const char* kernel : {"gla.chunk", "gla.fused_recurrent"}) {
    for (const char* dtype : {"bf16", "fp16", "fp32"}) {
      const Ran ran =
          run_assay(std::string("verify ") + kernel + kSmall + "--initial-state --dtype " + dtype, here);
      EXPECT_EQ(ran.status, 0) << kernel << " " << dtype << "\n" << ran.out << ran.err;
      for (const char* part : {"PASS", "final_state", "worst element", "got", "expected", "bound",
                               "tightness", "replay: assay replay "}) {
        EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
      }
      EXPECT_EQ(ran.err, "") << "no progress where standard error is no terminal";
      EXPECT_EQ(ran.out.find('\x1b'), std::string::npos) << "no colours where standard output is no terminal";
    }
  }
}

TEST(Cli, WhereNoSlotsAreAskedForThereIsTheUsualNumber) {
  const ScratchFolder here;
  const Ran ran =
      run_assay("verify gsa.chunk --without g --direction both -T 16 -K 16 -V 16 --backend vm", here);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("gsa.chunk/B1/T16/H1/K16/V16/M64/"), std::string::npos) << ran.out;
}

TEST(Cli, TheResultOnStandardOutputIsOneDocumentThatReplaysAndRenders) {
  const ScratchFolder here;
  const Ran ran = run_assay(std::string("verify gla.fused_recurrent --json -") + kSmall, here);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("PASS"), std::string::npos) << "people read standard error then";
  const Verification v = verification_from_json(nlohmann::json::parse(ran.out));
  EXPECT_EQ(v.verdict, Verdict::pass);
  EXPECT_EQ(v.case_.T, 20);
  const Ran again = run_assay("replay " + v.token + " --backend vm --json again.json", here);
  EXPECT_EQ(again.status, 0) << again.err << again.out;
  Verification w = verification_from_json(nlohmann::json::parse(read_file(here / "again.json")));
  EXPECT_EQ(w.case_, v.case_);
  EXPECT_EQ(w.outputs.at(0).worst.got_bits, v.outputs.at(0).worst.got_bits);
  EXPECT_EQ(run_assay("report again.json --out page", here).status, 0);
  EXPECT_TRUE(std::filesystem::exists(here / "page/index.html"));
}

TEST(Cli, InputsFromAFileAreVerifiedAndTheReplayLineNamesTheFile) {
  const ScratchFolder here;
  write_safetensors(here / "x.safetensors", inputs());
  const Ran ran = run_assay("verify gla.chunk --backend vm --inputs x.safetensors", here);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("replay: assay verify gla.chunk --inputs x.safetensors"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("T=20 H=2 K=16 V=8"), std::string::npos) << ran.out;
  std::filesystem::create_directory(here / "npy");
  for (const auto& [name, tensor] : inputs(Dtype::fp32)) write_npy(here / ("npy/" + name + ".npy"), tensor);
  const Ran folder = run_assay("verify gla.chunk --backend vm --inputs npy", here);
  EXPECT_EQ(folder.status, 0) << folder.out << folder.err;
}

TEST(Cli, AResultThatCannotBePrintedIsNoPass) {
  const ScratchFolder here;
  const char* full = R"(sh -c '"$0" "$@" >/dev/full')";
  const std::string verify = std::string("verify gla.fused_recurrent") + kSmall;
  for (const std::string& arguments : {std::string("list kernels"), verify, verify + " --json -"}) {
    const Ran ran = run_assay(arguments, here, full);
    EXPECT_EQ(ran.status, 2) << arguments << ran.err;
    EXPECT_NE(ran.err.find("No space left on device"), std::string::npos) << arguments << ": " << ran.err;
  }
}

TEST(Cli, AnInterruptedRunOfFuzzingPrintsWhatItHasAndIsNoPass) {
  const ScratchFolder here;
  // --foreground: one signal, not a second one to the group, which would end the program at once.
  const Ran clean = run_assay("fuzz gla.fused_recurrent --backend vm --time 1h --json x.json", here,
                              "timeout --foreground --preserve-status -s INT 4");
  EXPECT_EQ(clean.status, 128 + 2) << clean.err;
  EXPECT_NE(clean.err.find("ending with the cases in flight"), std::string::npos) << clean.err;
  EXPECT_NE(clean.out.find("coverage, share of the cases"), std::string::npos) << clean.out;
  EXPECT_NE(clean.out.find("\nincomplete  "), std::string::npos) << clean.out;
  const nlohmann::json document = nlohmann::json::parse(read_file(here / "x.json"));
  EXPECT_EQ(document.at("kind"), "fuzz");
  EXPECT_EQ(document.at("ended_early"), "interrupted");
}

TEST(CliCampaign, OneThatTriedNothingIsNoPass) {
  const ScratchFolder here;
  const std::string examples = std::string(ASSAY_SOURCE_DIR) + "/examples/strangers_gla/plan.json",
                    ptx = std::string(ASSAY_SOURCE_DIR) + "/tests/data/gla_naive.ptx";
  nlohmann::json plan = nlohmann::json::parse(read_file(examples));
  plan["accepts"] = "K == 7 && V == 300";
  write_file(here / "none.json", plan.dump());
  const std::pair<std::string, const char*> table[] = {
      {"fuzz --backend vm --db '' --cases 2 --ptx " + ptx + " --plan none.json",
       "none of the 2 cases drawn for it is taken: "},
      {"mutate hgrn.fused_recurrent --mutants 3 --time 0.0000001s --fail-under 90", "no mutant was tried"},
      {"mutate hgrn.fused_recurrent --mutants 3 --time 0.0000001s", "no mutant was tried"},
      {"fuzz gla.fused_recurrent --backend vm --db '' --time 0.0000001s", "no case was judged"},
  };
  for (const auto& [arguments, message] : table) {
    const Ran ran = run_assay(arguments, here);
    EXPECT_EQ(ran.status, 2) << arguments << "\n" << ran.out << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << arguments << ": " << ran.err;
    EXPECT_EQ(ran.out.find("100.0 %"), std::string::npos) << ran.out;
  }
}

TEST(Cli, ZerosForAnAbsentInputTakeNoMemoryWhereOnlyBlocksRun) {
  const ScratchFolder here;
  const std::string root = ASSAY_SOURCE_DIR;
  nlohmann::json plan = nlohmann::json::parse(read_file(root + "/examples/strangers_gla/plan.json"));
  for (nlohmann::json& argument : plan["launches"][0]["arguments"])
    if (argument == "g") argument = {{"pointer", "g"}, {"absent", "zeros"}};
  write_file(here / "zeros.json", plan.dump());
  // g would take 2 GB.
  const Ran ran = run_assay("verify --ptx " + root +
                                "/tests/data/gla_naive.ptx --plan zeros.json -B 60000 -T 64 -K 128 -V 1 "
                                "--without g --blocks last --threads 1 --backend vm",
                            here, "ulimit -v 1500000 &&");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

TEST(CliCampaign, OneOverDefectsGoesOnWhereItsFileEnds) {
  const ScratchFolder here;
  const std::string campaign = "defects hgrn.fused_recurrent@U1 --backend vm --cases 30 --json d.json";
  const Ran first = run_assay(campaign, here), again = run_assay(campaign, here);
  EXPECT_NE(first.out.find("found  hgrn.fused_recurrent@U1"), std::string::npos) << first.out << first.err;
  EXPECT_EQ(again.out.find("found  hgrn.fused_recurrent@U1"), std::string::npos)
      << "measured again: " << again.out;
  EXPECT_NE(again.out.find("1 of 1 defects found"), std::string::npos) << again.out << again.err;
}

TEST(Cli, OutOfDomainInputsStillLeaveADocument) {
  const ScratchFolder here;
  const Ran ran = run_assay(std::string("verify gla.chunk --decay constant:1 --json x.json") + kSmall, here);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(verification_from_json(nlohmann::json::parse(read_file(here / "x.json"))).verdict,
            Verdict::domain);
}

TEST(CliCampaign, APtxWithoutSourceLinesIsSaidToHaveNoneWhereThereIsAFinding) {
  const ScratchFolder here;
  std::istringstream whole(read_file(ASSAY_SOURCE_DIR "/tests/data/gla_naive.ptx"));
  std::string wrong, bare;  // the .local memory of both stays
  for (std::string line; std::getline(whole, line);) {
    if (const size_t log2_e = line.find("0f3FB8AA3B"); log2_e != line.npos)
      line.replace(log2_e, 10, "0f40000000");
    wrong += line + "\n";
    if (!line.starts_with("\t.loc\t")) bare += line + "\n";
  }
  ASSERT_LT(bare.size(), wrong.size());
  write_file(here / "wrong.ptx", wrong);
  write_file(here / "bare.ptx", bare);
  const std::string rest =
      " --plan " ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json" + std::string(kSmall);
  const Ran without = run_assay("verify --ptx bare.ptx" + rest, here);
  EXPECT_EQ(without.status, 1) << without.out;
  EXPECT_NE(without.err.find("bare.ptx has no source lines"), std::string::npos) << without.err;
  const Ran with = run_assay("verify --ptx wrong.ptx" + rest, here);
  EXPECT_EQ(with.status, 1) << with.out;
  EXPECT_EQ(with.err, "");
}

}  // namespace
}  // namespace assay
