// Births noted on a GPU, held against the machine's own trace of the same programs.
//   assay watch --on cuda -- watch_births plants [I/N]        planted births: each is noted at its line, none
//                                                            beside it; and rwkv6's historic NaN
//   assay watch --on cuda -- watch_births clean COUNT SEED [KERNEL...]
//                                                            COUNT launches in which the machine sees nothing
//                                                            born, of drawn cases: nothing is noted
// I/N: the I-th share of N. Programs are launched through the driver that the watch stands in front of;
// outputs are compared with the machine's, which has no watch. With --on vm the stand-in takes the GPU's
// place.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/generator.h"
#include "kernels/claim.h"
#include "src/base/backend/cuda_engine.h"
#include "src/base/numerics/bad_input.h"
#include "tools/watch/plants.h"

namespace assay::watch {
namespace {

using nlohmann::json;

/// The watch that this process was started with.
class OwnWatch {
 public:
  OwnWatch() : result_(reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "assay_watch_result"))) {
    if (!result_) throw BadInput("start it as: assay watch --on cuda -- watch_births ...");
  }
  json result() const { return json::parse(result_()); }

 private:
  const char* (*const result_)();
};

struct CardRun {
  BirthLines noted;
  uint32_t launches = 0;  ///< that the watch counted
  bool trapped = false, same_outputs = true;
};

class Card {
 public:
  explicit Card(const OwnWatch& watch) : watch_(watch) {}

  CardRun run(const Program& program, const TensorMap& inputs) {
    const auto before = watch_.result().at("launches").get<uint32_t>();
    const Outcome outcome = engine_.run(program, inputs, false);
    const json result = watch_.result();
    CardRun made;
    made.launches = result.at("launches").get<uint32_t>() - before;
    if (made.launches < program.launches.size())
      throw BadInput("the watch sees no launches: is it in front of the driver?");
    for (const json& b : result.at("births")) {
      if (b.at("launch").get<uint32_t>() < before) continue;
      const auto instruction = b.at("instruction").get<std::string>();
      auto& line = made.noted[birth_line(b.at("file"), b.at("line"), b.at("ptx_line"),
                                         instruction.substr(0, instruction.find(' ')))];
      (b.at("kind") == "NaN" || b.at("kind") == "infinity became NaN" ? line.first : line.second) = true;
    }
    made.trapped = outcome.trap.has_value();
    if (outcome.trap) fmt::print("  trap: {}\n", outcome.trap->message);
    const Outcome machine = vm::run(program, inputs, {});
    for (const auto& [name, tensor] : machine.outputs)
      made.same_outputs &= !outcome.trap && tensor.data == outcome.outputs.at(name).data;
    return made;
  }

 private:
  const OwnWatch& watch_;
  CudaEngine engine_;
};

void print_lines(const char* what, const BirthLines& lines) {
  for (const auto& [line, born] : lines)
    fmt::print("    {} {}{}{}\n", what, line, born.first ? " NaN" : "", born.second ? " infinity" : "");
}

/// Whether it was noted as the machine traces it, with the same outputs.
bool told(const std::string& kind, const std::string& kernel, const PlantedProgram& made, Card& card) {
  const CardRun ran = card.run(made.program, made.inputs);
  const bool right = ran.noted == made.traced && !ran.trapped && ran.same_outputs;
  fmt::print("{:6} {:28} {:26} {} lines{}\n", right ? "noted" : "WRONG", kind, kernel, ran.noted.size(),
             ran.same_outputs ? "" : ", other outputs");
  if (!right) print_lines("machine", made.traced), print_lines("card   ", ran.noted);
  std::fflush(stdout);
  return right;
}

int plants_of_share(size_t share, size_t shares) {
  const OwnWatch watch;
  Card card(watch);
  const std::vector<PlantedCase> cases = planted_cases();
  int right = 0, wrong = 0;
  for (size_t i = share; i <= cases.size(); i += shares) {
    if (i == cases.size()) {  // the last of all
      const PlantedProgram historic = historic_nan();
      const bool at_line = std::any_of(historic.traced.begin(), historic.traced.end(), [](const auto& line) {
        return line.first.starts_with(kHistoricLine) && line.second.second;
      });
      (at_line && told("rwkv6's historic NaN", "rwkv6.chunk@S2b", historic, card) ? right : wrong) += 1;
      continue;
    }
    const std::optional<PlantedProgram> made = planted(cases[i]);
    if (!made) fmt::print("WRONG  {:28} {:26} no place for it\n", cases[i].plant->kind, cases[i].kernel);
    (made && told(cases[i].plant->kind, cases[i].kernel, *made, card) ? right : wrong) += 1;
  }
  fmt::print("{} noted, {} wrong\n", right, wrong);
  return wrong ? 1 : 0;
}

/// Of a kernel: the driver compiles each for seconds.
constexpr size_t kMostModules = 4;

/// Launches of one kernel's drawn cases, until there are `count` in which nothing is born.
struct CleanShare {
  uint32_t launches = 0;
  int cases = 0, with_births = 0, differing = 0;
  BirthLines false_births;
};

void run_clean(const Kernel& kernel, uint64_t seed, uint32_t count, Card& card, CleanShare& share) {
  const Operator& op = find_operator(kernel.operator_name);
  Feedback feedback;
  std::set<std::string> loaded;
  const uint32_t upto = share.launches + count;
  for (uint64_t i = 0; share.launches < upto && i < 20 * uint64_t{count} + 20; ++i) {
    const Case c = draw_case(kernel, op, feedback, seed, i);
    count_case(feedback, c, op);
    if (c.B * c.T * c.H > 300 || c.K * c.V > 8000 || !c.blocks.empty()) continue;
    const ResolvedCase resolved = resolve_unchecked(c, op);
    const TensorMap inputs = draw_inputs(resolved);
    const Program program = program_of(kernel, resolved, inputs);
    std::set<std::string> with = loaded;
    for (const Module& module : program.modules) with.insert(module.name);
    if (with.size() > kMostModules) continue;
    loaded = std::move(with);
    if (!traced_lines(program, inputs, {}).empty()) {
      ++share.with_births;
      continue;
    }
    const CardRun ran = card.run(program, inputs);
    ++share.cases;
    share.launches += static_cast<uint32_t>(program.launches.size());
    if (!ran.same_outputs || ran.trapped) {
      ++share.differing;
      fmt::print("OTHER OUTPUTS {}\n", token_of(c));
    }
    for (const auto& [line, born] : ran.noted) {
      fmt::print("FALSE {} in {}\n", line, token_of(c));
      share.false_births.insert({line, born});
    }
  }
}

int clean(uint32_t count, uint64_t seed, std::vector<std::string> names) {
  const OwnWatch watch;
  Card card(watch);
  if (names.empty())
    for (const Kernel& kernel : kernels()) names.push_back(kernel.name);
  CleanShare all;
  const uint32_t each =
      (count + static_cast<uint32_t>(names.size()) - 1) / static_cast<uint32_t>(names.size());
  for (const std::string& name : names) run_clean(find_kernel(name), seed, each, card, all);
  fmt::print(
      "{} launches of {} cases of {} kernels in which nothing is born: {} births noted, {} with other "
      "outputs; "
      "{} cases with births passed over\n",
      all.launches, all.cases, names.size(), all.false_births.size(), all.differing, all.with_births);
  return all.false_births.empty() && all.differing == 0 && all.launches >= count ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "plants") {
    size_t share = 0, shares = 1;
    if (words.size() > 1 && std::sscanf(words[1].c_str(), "%zu/%zu", &share, &shares) != 2) return 2;
    return plants_of_share(share, shares);
  }
  if (words.size() >= 3 && words[0] == "clean")
    return clean(static_cast<uint32_t>(std::atoll(words[1].c_str())),
                 std::strtoull(words[2].c_str(), nullptr, 10), {words.begin() + 3, words.end()});
  std::fprintf(stderr, "usage: watch_births plants [I/N] | clean COUNT SEED [KERNEL...]\n");
  return 2;
}

}  // namespace
}  // namespace assay::watch

int main(int argc, char** argv) {
  try {
    return assay::watch::run({argv + 1, argv + argc});
  } catch (const assay::BadInput& error) {
    std::fprintf(stderr, "watch_births: %s\n", error.what());
    return 2;
  }
}
