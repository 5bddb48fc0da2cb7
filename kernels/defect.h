// Known defects: a kernel compiled from patched sources, on demand.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace assay {

/// kernels/defects/<kernel with _ for .>/<name>.patch; `what`, `since`, `cause` and `line` are its first
/// lines: "cause: NAME or NAME: in words", the causes that name it; "line: FILE:LINE, FILE:FIRST-LAST", the
/// lines that a value which it makes infinite or NaN may be traced to; "fingerprint: TEXT or TEXT", parts of
/// what is said of dependences that differ (fingerprint.h) which say as much as a cause.
struct Defect {
  std::string kernel, name, what, since, cause, line, fingerprint;
  std::string_view patch;

  std::string id() const { return kernel + "@" + name; }
};
const std::vector<Defect>& defects();

/// Lines first to last of a file.
struct LineRange {
  std::string file;
  int first = 0, last = 0;
};
/// The names in `cause`, best first.
std::vector<std::string> expected_causes(const Defect&);
/// The texts in `fingerprint`.
std::vector<std::string> expected_fingerprints(const Defect&);
/// Throws BadInput where `line` is not of the form above.
std::vector<LineRange> expected_lines(const Defect&);

/// Lines of the patched sources that the patch adds or changes, and where it only takes something away those
/// right before and after.
std::vector<LineRange> patched_lines(const Defect&);

/// The kernel with that defect: the same plans over modules compiled by nvcc (ASSAY_NVCC, PATH,
/// /usr/local/cuda/bin, the build's own) into ASSAY_CACHE, else XDG_CACHE_HOME/assay, else ~/.cache/assay.
/// Throws BadInput where there is no such defect or no nvcc, or where the compiler refuses.
Kernel with_defect(const Kernel& clean, const std::string& defect);

/// Applies a unified diff to the files it names; context must match exactly. Lines before the first "--- "
/// are prose. Throws BadInput naming file and line.
std::vector<std::pair<std::string, std::string>> apply_patch(
    std::vector<std::pair<std::string, std::string>> files, std::string_view patch);

}  // namespace assay
