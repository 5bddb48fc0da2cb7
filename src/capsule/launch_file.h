// A launch file: JSON beside PTX that says what to launch it with (examples/launch/README.md). Written by
// hand; sizes have names, and grids, shapes and arguments are expressions in them, so that one file serves
// many sizes.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/document/expression.h"
#include "src/capsule/capsule.h"
#include "src/capsule/launch_folder.h"

namespace assay {

/// A size that expressions may name.
struct NamedSize {
  std::string name;
  int64_t value = 1;         ///< of a run that does not choose
  int64_t from = 1, to = 1;  ///< what fuzzing draws from; both `value` where it does not vary
  int64_t multiple = 1;      ///< only multiples of it
  bool varies() const { return from < to; }
};

class LaunchFile {
 public:
  /// `path`: a launch file, a folder with one, or a capsule. `ptx`: PTX files in place of those that the
  /// document names; paths in it are relative to its own folder. Reads everything but the tensors. Throws
  /// BadInput, one line naming file and place.
  LaunchFile(const std::string& path, const std::vector<std::string>& ptx);

  const std::string& name() const { return name_; }
  const nlohmann::json& document() const { return document_; }
  const std::vector<Module>& modules() const { return modules_; }
  const std::vector<NamedSize>& sizes() const { return sizes_; }
  /// Whether these sizes are meant ("accepts").
  bool accepts(const std::map<std::string, int64_t>& sizes) const;
  /// The program at these sizes (those left out have their values), random tensors by `seed`. Throws BadInput
  /// where an expression has no legal value, an entry is missing, or an argument is not what its parameter
  /// takes. `large_stay`: of a run of some blocks; values of more than kLargestHeld bytes are not held.
  Capsule make(const std::map<std::string, int64_t>& sizes, uint64_t seed, bool large_stay = false) const;

 private:
  ExpressionScope scope_of(const std::map<std::string, int64_t>& sizes) const;
  void read_modules(const std::vector<std::string>& given);

  LaunchFolder folder_;
  std::string path_, name_;
  nlohmann::json document_;
  std::vector<NamedSize> sizes_;
  std::vector<std::pair<std::string, std::string>> made_sizes_;  ///< by expressions in those of `sizes_`
  std::vector<Module> modules_;
  /// By module the names of its entries, as PTX has them and as C++ does.
  struct Entry {
    size_t module;
    std::string name, source_name;
  };
  std::vector<Entry> entries_;
  /// Variables of modules in global and constant memory.
  struct Variable {
    size_t module;
    std::string name, source_name;
    int64_t bytes;
  };
  std::vector<Variable> variables_;
  friend class ProgramMaker;
};

}  // namespace assay
