#include "kernels/prepare_ptx.h"

#include <filesystem>
#include <map>
#include <set>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

bool starts_with_word(std::string_view line, std::string_view word) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != line.npos && line.substr(begin).starts_with(word);
}

/// "kernels/gla/chunk.cu", or "cuda/crt/math_functions.hpp" for a header of the toolkit, which may lie below
/// the source root too (build/nvcc).
std::string portable_path(std::string_view path, std::string_view root) {
  while (root.ends_with('/')) root.remove_suffix(1);
  const size_t include = path.rfind("/include/");
  if (path.starts_with(root) && path.substr(root.size()).starts_with('/') &&
      (include == path.npos || include < root.size()))
    return std::string(path.substr(root.size() + 1));
  return "cuda/" +
         std::string(include != path.npos ? path.substr(include + 9) : path.substr(path.rfind('/') + 1));
}

struct File {
  std::string number, path;
};

/// `.file 3 "/a/../path"` -> {3, /path}
File file_of(std::string_view line) {
  const size_t open = line.find('"'), close = line.rfind('"');
  if (open == line.npos || close == open) throw BadInput("PTX: .file without a quoted path");
  std::string_view number = line.substr(line.find(".file") + 5, open - line.find(".file") - 5);
  number.remove_prefix(std::min(number.find_first_not_of(" \t"), number.size()));
  return {std::string(number.substr(0, number.find_first_of(" \t"))),
          std::filesystem::path(line.substr(open + 1, close - open - 1)).lexically_normal().string()};
}

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The number in `.loc 5 151 3, ...`.
std::string_view file_number(std::string_view line) {
  std::string_view number = line.substr(line.find(".loc") + 4);
  number.remove_prefix(std::min(number.find_first_not_of(" \t"), number.size()));
  return number.substr(0, number.find(' '));
}

/// The label in `.loc ..., function_name $L__info_string7, inlined_at ...`, or nothing.
std::string_view function_label(std::string_view line) {
  const size_t at = line.find("function_name ");
  if (at == line.npos) return {};
  const std::string_view label = line.substr(at + 14);
  return label.substr(0, label.find_first_of(",+ "));
}

/// What of the text stays: numbers of headers that only wrap instructions, and function names that a line of
/// ours refers to. The others hold a hash of the compiled file's path.
struct Survey {
  std::set<std::string, std::less<>> wrappers, labels;
};
Survey survey(std::string_view text, std::string_view source_root) {
  Survey found;
  for_each_line(text, [&](std::string_view line) {
    if (!starts_with_word(line, ".file")) return;
    const File file = file_of(line);
    const std::string path = portable_path(file.path, source_root);
    if (path.starts_with("cuda/") || path.ends_with("instruction.cuh")) found.wrappers.insert(file.number);
  });
  for_each_line(text, [&](std::string_view line) {
    if (starts_with_word(line, ".loc") && !found.wrappers.contains(file_number(line)))
      found.labels.emplace(function_label(line));
  });
  return found;
}

/// "1 19 3" in `.loc 1 19 3, ...`, or, with `key` "inlined_at ", in `..., inlined_at 1 19 3`.
std::string_view place(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == line.npos) return {};
  std::string_view rest = line.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return rest.substr(0, rest.find(','));
}

/// `.loc` lines seen so far, by place.
class Places {
 public:
  void add(std::string_view line) { lines_.insert_or_assign(std::string(place(line, ".loc")), line); }
  /// The line that called into wrappers at `line`: the innermost one outside them; empty where none was seen.
  std::string_view caller(std::string_view line, const Survey& survey) const {
    for (int depth = 0; depth < 16; ++depth) {
      const auto found = lines_.find(place(line, "inlined_at"));
      if (found == lines_.end()) return {};
      line = found->second;
      if (!survey.wrappers.contains(file_number(line))) return line;
    }
    return {};
  }

 private:
  std::map<std::string, std::string_view, std::less<>> lines_;
};

}  // namespace

std::string prepare_ptx(std::string_view text, std::string_view source_root) {
  const Survey kept = survey(text, source_root);
  Places places;
  bool versioned = false, skipping_name = false;
  std::string result;
  result.reserve(text.size());
  for_each_line(text, [&](std::string_view line) {
    if (line.empty() || starts_with_word(line, "//")) return;
    // A hint that only .version 8.3 knows: which bytes of a vector load are used.
    if (starts_with_word(line, ".pragma") && line.find("used_bytes_mask") != line.npos) return;
    if (line.starts_with("$L__info_string"))
      skipping_name = !kept.labels.contains(line.substr(0, line.find(':')));
    else if (!line.starts_with(".b8"))
      skipping_name = false;
    if (skipping_name) return;
    if (starts_with_word(line, ".version")) {
      line = text.find("\n.target sm_90a") == text.npos ? ".version 7.0" : ".version 8.0";
      versioned = true;
    } else if (starts_with_word(line, ".file")) {
      const File file = file_of(line);
      result += "\t.file\t" + file.number + " \"" + portable_path(file.path, source_root) + "\"\n";
      return;
    } else if (starts_with_word(line, ".loc")) {
      places.add(line);
      if (kept.wrappers.contains(file_number(line))) line = places.caller(line, kept);
      if (line.empty()) return;
    }
    result.append(line).push_back('\n');
  });
  if (!versioned) throw BadInput("PTX: no .version line; was this written by nvcc -ptx?");
  return result;
}

}  // namespace assay
