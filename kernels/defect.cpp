#include "kernels/defect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include "kernels/compile_ptx.h"
#include "kernels/module_text.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr std::string_view folder = "kernels/defects/";

/// Value of "what: ..." among the patch's first lines.
std::string header(std::string_view patch, std::string_view key) {
  const std::string_view prose = patch.substr(0, patch.find("\n--- "));
  const std::string start = fmt::format("{}: ", key);
  const size_t at = prose.starts_with(start) ? 0 : prose.find('\n' + start);
  if (at == prose.npos) return "";
  const size_t begin = at + start.size() + (at == 0 ? 0 : 1);
  return std::string(prose.substr(begin, prose.find('\n', begin) - begin));
}

/// "gla_chunk" is "gla.chunk"; names of operators and of modes may hold "_" too.
std::string kernel_of(std::string_view folder_name) {
  for (const Kernel& kernel : kernels()) {
    std::string name = kernel.name;
    std::replace(name.begin(), name.end(), '.', '_');
    if (name == folder_name) return kernel.name;
  }
  return std::string(folder_name);
}

Defect defect_of(const SourceFile& file) {
  const std::string_view path = file.path.substr(folder.size());
  const size_t slash = path.find('/');
  return {kernel_of(path.substr(0, slash)),
          std::string(path.substr(slash + 1, path.size() - slash - 1 - std::string_view(".patch").size())),
          header(file.text, "what"),
          header(file.text, "since"),
          header(file.text, "cause"),
          header(file.text, "line"),
          header(file.text, "fingerprint"),
          file.text};
}

const Defect& find_defect(const std::string& kernel, const std::string& name) {
  std::string known;
  for (const Defect& defect : defects()) {
    if (defect.kernel != kernel) continue;
    if (defect.name == name) return defect;
    known += (known.empty() ? "" : ", ") + defect.name;
  }
  throw BadInput(known.empty() ? fmt::format("{} has no known defects ('@{}')", kernel, name)
                               : fmt::format("{} has no defect '{}'; there are: {}", kernel, name, known));
}

/// Sources that are not made of the same text any more; the others' modules stay as they were built.
std::set<std::string> changed_sources(const SourceTree& clean, const SourceTree& patched) {
  std::set<std::string> changed;
  for (const auto& [path, text] : patched)
    if (path.ends_with(".cu") && with_includes(clean, path) != with_includes(patched, path))
      changed.insert(path);
  return changed;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t end = 0; end != text.npos; text.remove_prefix(end == text.npos ? 0 : end + separator.size())) {
    end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
  }
  return parts;
}

/// "FILE:12" or "FILE:12-15".
LineRange line_range(const std::string& text, const Defect& defect) {
  const size_t colon = text.rfind(':');
  LineRange range;
  if (colon != text.npos) {
    const char* const numbers = text.c_str() + colon + 1;
    const int read = std::sscanf(numbers, "%d-%d", &range.first, &range.last);
    if (read == 1) range.last = range.first;
    range.file = text.substr(0, colon);
  }
  if (range.first < 1 || range.last < range.first)
    throw BadInput(
        fmt::format("{}: line '{}' of its patch: write FILE:LINE or FILE:FIRST-LAST", defect.id(), text));
  return range;
}

}  // namespace

std::vector<std::string> expected_causes(const Defect& defect) {
  return parts_of(std::string_view(defect.cause).substr(0, defect.cause.find(':')), " or ");
}

std::vector<std::string> expected_fingerprints(const Defect& defect) {
  return defect.fingerprint.empty() ? std::vector<std::string>{} : parts_of(defect.fingerprint, " or ");
}

std::vector<LineRange> expected_lines(const Defect& defect) {
  std::vector<LineRange> ranges;
  for (const std::string& part : parts_of(defect.line, ",")) ranges.push_back(line_range(part, defect));
  return ranges;
}

std::vector<LineRange> patched_lines(const Defect& defect) {
  std::vector<LineRange> ranges;
  std::istringstream text{std::string(defect.patch)};
  std::string file;
  int next = 0;  // of the patched file
  bool in_hunk = false, removed = false;
  LineRange added;
  const auto close = [&] {  // a run of added and removed lines
    if (added.first > 0)
      ranges.push_back(added);
    else if (removed)
      ranges.push_back({file, std::max(1, next - 1), next});
    added = {}, removed = false;
  };
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("+++ b/")) {
      close();
      file = line.substr(6, line.find('\t') - 6), in_hunk = false;
    } else if (int begin = 0; std::sscanf(line.c_str(), "@@ -%*d,%*d +%d", &begin) == 1) {
      close();
      next = begin, in_hunk = true;
    } else if (in_hunk && line.starts_with('+')) {
      if (added.first == 0) added = {file, next, next};
      added.last = next++;
    } else if (in_hunk && line.starts_with('-') && !line.starts_with("--- ")) {
      removed = true;
    } else if (in_hunk) {
      close();
      ++next;
    }
  }
  close();
  return ranges;
}

const std::vector<Defect>& defects() {
  static const std::vector<Defect> table = [] {
    std::vector<Defect> result;
    for (const SourceFile& file : embedded_sources())
      if (file.path.starts_with(folder)) result.push_back(defect_of(file));
    return result;
  }();
  return table;
}

Kernel with_defect(const Kernel& clean, const std::string& name) {
  const Defect& defect = find_defect(clean.name, name);
  const SourceTree& clean_tree = kernel_sources();
  const SourceTree tree = apply_patch(clean_tree, defect.patch);

  Kernel kernel = clean;
  kernel.name = clean.name + "@" + defect.name;
  kernel.summary = "with a known defect: " + defect.what;
  kernel.exponents_meant_nonpositive = clean.exponents_nonpositive;
  kernel.exponents_nonpositive = false;
  kernel.plan = [plan = clean.plan, tree, reached = changed_sources(clean_tree, tree), name = kernel.name](
                    const ResolvedCase& c, const TensorMap& inputs) {
    Program result = plan(c, inputs);
    result.name = name;
    for (Module& module : result.modules)
      if (reached.contains(source_path(module.name))) module.ptx = compile_module(tree, module.name);
    return result;
  };
  kernel.plainly = [tree](Program program) { return compiled_plainly(std::move(program), tree); };
  return kernel;
}

}  // namespace assay
