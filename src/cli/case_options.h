// Options that say what is run: the kernel (registered, or a stranger's PTX and plan) and the case or its
// inputs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "src/case/case.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// KERNEL, or --ptx FILE.ptx --plan FILE.json; either with --mutant ID.
class KernelOptions {
 public:
  /// `positional`: what the name that stands first on the line is called; empty: only the two files can be
  /// given. `mutable_`: a mutant of it can be asked for.
  void add_to(CLI::App&, const std::string& positional = "KERNEL", bool mutable_ = true);
  /// Loads on first use. Throws BadInput where neither or both forms are given.
  const Kernel& kernel();
  /// KERNEL as it was given; empty: it was not.
  const std::string& name() const { return name_; }
  /// --mutant as it was given; empty: it was not.
  const std::string& mutant() const { return mutant_; }
  /// The case of a token, and its kernel chosen. Throws BadInput where --plan or --mutant name another one.
  Case case_of_token(const std::string& token);
  const std::string& ptx() const { return ptx_; }
  bool foreign() const { return !ptx_.empty() || !plan_.empty(); }
  /// " --ptx FILE --plan FILE" for a replay line; empty for a registered kernel.
  std::string replay_suffix() const;

 private:
  std::string name_, ptx_, plan_, mutant_;
  std::optional<Kernel> loaded_;
};

/// What is run: a case, with its inputs where they came from a file.
struct CaseToRun {
  Case case_;
  std::optional<TensorMap> inputs;
  TensorMap expected;              ///< outputs that the file holds beside them
  std::string given;               ///< the options that name and read the file, for replay lines
  std::vector<std::string> notes;  ///< what people should know about how the file was read
};

/// Sizes, formats, decays, ... or --inputs FILE.
class CaseOptions {
 public:
  void add_to(CLI::App&);
  /// Throws BadInput where options contradict each other or the file does not fit the operator.
  CaseToRun resolve(const Kernel&) const;
  /// The case of the options alone, to be varied before it is validated. Throws BadInput where --inputs is
  /// given.
  Case unchecked(const Kernel&) const;
  /// The first of these options that was given ("--length"); empty: none was.
  std::string first_given() const;
  /// All of them.
  std::vector<std::string> all_given() const;
  uint64_t seed() const { return case_.seed; }

 private:
  void add_sizes(CLI::App&);
  void add_drawing(CLI::App&);
  Case from_options(const Kernel&) const;
  Case with_slots(Case, const Kernel&) const;
  std::string options_of_file() const;

  Case case_;
  std::string cu_seqlens_, inputs_, dtype_ = "bf16", gate_dtype_ = "fp32", direction_ = "forward";
  std::vector<std::string> without_, parameters_, layout_, map_;
  double scale_ = 0;
  const CLI::App* app_ = nullptr;
};

}  // namespace assay::cli
