#include "src/result/checkout.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "src/base/document/shell_word.h"

namespace assay {
namespace {

/// What git prints, without the end of its line; nothing where it fails or is not there.
std::optional<std::string> git(const std::filesystem::path& folder, const char* arguments) {
  const std::string line = fmt::format("git -C {} {} 2>/dev/null", shell_word(folder.string()), arguments);
  std::FILE* const pipe = popen(line.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  if (pclose(pipe) != 0) return std::nullopt;
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

/// The first of the variables that is set.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* const value = std::getenv(name); value && *value) return value;
  return "";
}

}  // namespace

std::string text_of(const Checkout& checkout) {
  return fmt::format("{}{}{}", checkout.commit.substr(0, 12),
                     checkout.branch.empty() ? "" : fmt::format(" ({})", checkout.branch),
                     checkout.dirty ? ", changed" : "");
}

std::optional<Checkout> checkout_of(const std::filesystem::path& folder) {
  const std::optional<std::string> commit = git(folder, "rev-parse --verify -q HEAD");
  if (!commit) return std::nullopt;
  Checkout checkout{*commit, git(folder, "symbolic-ref -q --short HEAD").value_or(""), false};
  const std::optional<std::string> changed = git(folder, "status --porcelain --untracked-files=no");
  checkout.dirty = changed && !changed->empty();
  if (checkout.branch.empty())
    checkout.branch = from_environment({"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"});
  return checkout;
}

}  // namespace assay
