#include "src/campaign/mutate/population.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "reference/parallel.h"
#include "src/base/numerics/fnv.h"
#include "src/base/program/source_place.h"
#include "src/base/vm/instruction_row.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

/// SplitMix64's finaliser.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// False where the machine has no such instruction, as a rounding that its form lacks.
bool is_possible(const std::string& replacement) {
  if (replacement.empty()) return true;
  size_t at = replacement.starts_with('@') ? replacement.find(' ') + 1 : 0;
  const std::string opcode = replacement.substr(at, replacement.find_first_of(" ;", at) - at);
  return vm::find_row(opcode) != nullptr;
}

bool has_line(const ptx::Module& program, int32_t line) {
  return line >= 0 && program.lines[static_cast<size_t>(line)].line > 0;
}

/// The instruction itself, or the nearest one before it that has a line.
int32_t instruction_with_line(const ptx::Module& program, int32_t function, int32_t instruction) {
  const auto& body = program.functions[static_cast<size_t>(function)].body;
  int32_t at = instruction;
  while (at > 0 && !has_line(program, body[static_cast<size_t>(at)].line)) --at;
  return has_line(program, body[static_cast<size_t>(at)].line) ? at : instruction;
}

/// Mutants of one module by place.
using Places = std::map<std::string, std::vector<PossibleMutant>>;

Places places_of(const MutatedModule& module, int32_t number, const std::set<int32_t>& functions) {
  Places places;
  const ptx::Module& program = module.program->module();
  std::map<int32_t, std::string> lines;  // telling frames are searched for, once for each
  for (const int32_t function : functions) {
    for (const ptx::Mutation& mutation : module.program->mutations(function)) {
      if (!is_possible(module.program->replacement(mutation))) continue;
      const int32_t placed = instruction_with_line(program, function, mutation.instruction);
      const int32_t line =
          program.functions[static_cast<size_t>(function)].body[static_cast<size_t>(placed)].line;
      std::string& where = lines[line];
      if (where.empty() || !has_line(program, line)) {
        where = place_key(location_of(program, function, placed));
      }
      places[fmt::format("{} {}", where, mutation.change->name)].push_back({number, mutation});
    }
  }
  return places;
}

}  // namespace

SourceLocation place_of(const ptx::Module& program, int32_t function, int32_t instruction) {
  SourceLocation at = location_of(program, function, instruction_with_line(program, function, instruction));
  at.ptx_line =
      program.functions[static_cast<size_t>(function)].body[static_cast<size_t>(instruction)].ptx_line;
  return at;
}

std::string lines_of(const ptx::Module& program, int32_t function, const std::vector<int32_t>& instructions,
                     const std::function<std::string(const ptx::Instruction&)>& why) {
  constexpr size_t kShown = 2;
  std::vector<std::string> lines;
  for (const int32_t at : instructions) {
    const SourceLocation where = place_of(program, function, at);
    const auto& body = program.functions[static_cast<size_t>(function)].body;
    std::string line = fmt::format("{}:{}{}", where.file, where.line, why(body[static_cast<size_t>(at)]));
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  const size_t shown = std::min(lines.size(), kShown);
  std::string text =
      fmt::format("{}", fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (lines.size() > shown) text += fmt::format(" and {} more", lines.size() - shown);
  return text;
}

Population::Population(const std::vector<CleanCase>& cases, int threads) {
  std::map<std::string, int32_t> numbers;
  std::map<std::pair<int32_t, int32_t>, std::vector<uint8_t>> reached;
  for (const CleanCase& clean : cases) {
    for (const Module& module : clean.plan.modules)
      if (numbers.try_emplace(module.name, static_cast<int32_t>(modules_.size())).second)
        modules_.push_back({module.name, module.path, module.ptx, nullptr});
    for (const auto& [where, flags] : clean.reach.executed) {
      auto& all = reached[{numbers.at(where.first), where.second}];
      all.resize(flags.size());
      for (size_t i = 0; i < flags.size(); ++i) all[i] |= flags[i];
    }
  }
  std::vector<std::set<int32_t>> functions(modules_.size());
  for (const auto& [where, flags] : reached) {
    functions[static_cast<size_t>(where.first)].insert(where.second);
    instructions_ += static_cast<int64_t>(flags.size());
    reached_ += std::count_if(flags.begin(), flags.end(), [](uint8_t seen) { return seen & came_to; });
  }
  std::vector<Places> of_modules(modules_.size());
  parallel_for(static_cast<int64_t>(modules_.size()), threads, [&](int64_t i) {
    MutatedModule& module = modules_[static_cast<size_t>(i)];
    module.program = std::make_unique<ptx::MutableText>(module.text, module.path);
    of_modules[static_cast<size_t>(i)] =
        places_of(module, static_cast<int32_t>(i), functions[static_cast<size_t>(i)]);
  });
  Places all;
  for (Places& places : of_modules)
    for (auto& [key, mutants] : places) {
      auto& into = all[key];
      into.insert(into.end(), mutants.begin(), mutants.end());
    }
  for (auto& [key, mutants] : all) places_.push_back({key, std::move(mutants)});
}

int64_t Population::possible() const {
  int64_t count = 0;
  for (const MutationPlace& place : places_) count += static_cast<int64_t>(place.mutants.size());
  return count;
}

std::vector<PossibleMutant> Population::sequence(uint64_t seed) const {
  struct Queue {
    uint64_t hash = 0;
    std::vector<std::pair<uint64_t, const PossibleMutant*>> mutants;
  };
  std::vector<Queue> queues;
  size_t longest = 0;
  for (const MutationPlace& place : places_) {
    Queue queue{mixed(seed ^ fnv1a(place.key)), {}};
    for (const PossibleMutant& mutant : place.mutants)
      queue.mutants.emplace_back(mixed(queue.hash + queue.mutants.size()), &mutant);
    std::sort(queue.mutants.begin(), queue.mutants.end());
    longest = std::max(longest, queue.mutants.size());
    queues.push_back(std::move(queue));
  }
  std::sort(queues.begin(), queues.end(), [](const Queue& a, const Queue& b) { return a.hash < b.hash; });
  std::vector<PossibleMutant> sequence;
  for (size_t round = 0; round < longest; ++round)
    for (const Queue& queue : queues)
      if (round < queue.mutants.size()) sequence.push_back(*queue.mutants[round].second);
  return sequence;
}

}  // namespace assay
