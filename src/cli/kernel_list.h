// What a campaign is of: kernels of ours, kernels of the user's own with their plans, launch files; several
// of each.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// A launch file, with its PTX where that was given.
struct ListedLaunchFile {
  std::string path, ptx;
};

class KernelList {
 public:
  void add_to(CLI::App&);
  /// Loads what was named. Throws BadInput where nothing was, or where names, PTX and plans do not fit
  /// together.
  void load();

  const std::vector<const Kernel*>& kernels() const { return kernels_; }
  const std::vector<ListedLaunchFile>& launch_files() const { return files_; }
  /// Of the kernels of the user's own, as they were given.
  const std::vector<std::string>& ptx() const { return ptx_; }
  /// By the name of a kernel of the user's own: " --ptx FILE --plan FILE" for a replay line.
  const std::map<std::string, std::string>& replay_suffixes() const { return suffixes_; }

 private:
  void load_own();
  void add(const Kernel&);

  std::vector<std::string> names_, ptx_, plans_;
  std::string mutant_;
  std::deque<Kernel> own_;
  std::vector<const Kernel*> kernels_;
  std::vector<ListedLaunchFile> files_;
  std::map<std::string, std::string> suffixes_;
};

}  // namespace assay::cli
