// A program with the watch in its modules: run on the machine, and what it noted.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"
#include "src/base/watch/birth_buffer.h"
#include "src/base/watch/rewriter.h"

namespace assay::watch {

/// A rewritten module beside what it was.
struct WatchedModule {
  std::shared_ptr<const ptx::Module> original;
  std::vector<WatchedSite> sites;
  int32_t first_site = 0;
};

struct WatchedProgram {
  Program program;  ///< one output more, kBufferName, which is an input too
  Tensor buffer;    ///< that input: zeros
  std::vector<WatchedModule> modules;
  WatchCounts counts;
  std::vector<std::string> unwatched;
};
inline constexpr const char* kBufferName = "assay.watch";

/// Throws BadInput as ptx::parse does.
WatchedProgram watched(const Program&, const WatchOptions& = {});

/// What was born, as it is told.
struct NotedBirth {
  SourceLocation where;
  std::string instruction;  ///< "ex2.approx.f32 %f3, %f2"
  std::string kind;         ///< "NaN", "infinity"; "infinity became NaN", "division by zero"
  std::string example;
  Record record;
};
/// In the order of launches and lines.
std::vector<NotedBirth> noted_births(const std::vector<WatchedModule>&, std::span<const std::byte> buffer);

}  // namespace assay::watch
