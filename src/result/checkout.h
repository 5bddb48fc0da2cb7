// The state of the sources that were tested, as their version control has it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "src/base/fields/fields.h"

namespace assay {

struct Checkout {
  std::string commit, branch;  ///< an empty branch: none is checked out
  bool dirty = false;          ///< tracked files differ from the commit
};
template <typename Io>
void fields(Io& io, Checkout& x) {
  io.type("checkout", "the sources that were tested");
  ASSAY_FIELD(commit);
  ASSAY_FIELD(branch, "empty: none is checked out");
  ASSAY_FIELD(dirty, "tracked files differ from the commit");
}

/// "1a2b3c4d5e6f (main), changed".
std::string text_of(const Checkout&);

/// Of the folder, as git tells; where a runner has checked out a commit alone the branch that its environment
/// names. Nothing where the folder is in no checkout.
std::optional<Checkout> checkout_of(const std::filesystem::path& folder);

}  // namespace assay
