#include "src/capsule/launch_file.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "src/base/document/json_node.h"
#include "src/base/program/source_root.h"
#include "src/base/program/steps.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/capsule/launch_arguments.h"
#include "src/capsule/launch_tensors.h"

namespace assay {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 40;

/// "void scan<4>(float*)" of "_Z4scan..."; the name itself where it is no mangled one.
std::string source_name_of(const std::string& name) {
  if (!name.starts_with("_Z")) return name;  // "f" would be float
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string made = status == 0 && text ? text : name;
  std::free(text);
  return made;
}

/// Without arguments and return type: "scan<4>".
std::string instance_name_of(const std::string& source_name) {
  int open = 0;  // brackets of template arguments, which may hold parentheses and blanks
  size_t start = 0, end = source_name.size();
  for (size_t i = 0; i < source_name.size(); ++i) {
    const char c = source_name[i];
    open += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (open > 0) continue;
    if (c == ' ' || c == ':') start = i + 1;
    if (c == '(' && i > start) {
      end = i;
      break;
    }
  }
  return source_name.substr(start, end - start);
}

/// Without template arguments too: "scan".
std::string base_name_of(const std::string& source_name) {
  const std::string text = instance_name_of(source_name);
  return text.substr(0, text.find('<'));
}

NamedSize read_size(const std::string& name, const JsonNode& node) {
  NamedSize size{.name = name};
  const bool fixed = node.is_object() && node.has("value") && !node.has("from") && !node.has("to");
  if (node.is_number() || fixed) {
    if (fixed) node.keys({"value"});
    size.value = size.from = size.to = (fixed ? node.get("value", "") : node).whole(0, kLargestSize);
    return size;
  }
  node.keys({"value", "from", "to", "multiple"});
  size.from = node.get("from", "the smallest that fuzzing draws").whole(0, kLargestSize);
  size.to = node.get("to", "the largest that fuzzing draws").whole(size.from, kLargestSize);
  if (node.has("multiple")) size.multiple = node.get("multiple", "").whole(1, kLargestSize);
  size.value = node.has("value") ? node.get("value", "").whole(size.from, size.to) : size.from;
  return size;
}

}  // namespace

LaunchFile::LaunchFile(const std::string& path, const std::vector<std::string>& ptx)
    : folder_(path),
      path_(folder_.document_path()),
      name_(std::filesystem::path(path).stem().string()),
      document_(parse_unambiguous(folder_.document(), path_, "no launch file, which is JSON")) {
  const JsonNode root(document_, "", path_);
  root.keys(
      {"$schema", "name", "summary", "ptx", "sizes", "accepts", "tensors", "launches", "recorded", "origin"});
  if (root.has("name")) name_ = root.get("name", "").text();
  if (root.has("sizes")) {
    for (const auto& [name, node] : root.get("sizes", "").members())
      if (node.is_string()) {
        made_sizes_.emplace_back(name, node.expression());
      } else {
        sizes_.push_back(read_size(name, node));
      }
  }
  read_modules(ptx);
}

void LaunchFile::read_modules(const std::vector<std::string>& given) {
  const JsonNode root(document_, "", path_);
  const auto add = [&](const std::string& path, const std::string& text) {
    modules_.push_back({fmt::format("m{}", modules_.size()), path,
                        std::make_shared<const std::string>(with_source_names(text))});
    const ptx::Module module = ptx::parse_functions(*modules_.back().ptx, path);
    for (const ptx::Function& f : module.functions)
      if (f.entry && f.defined) entries_.push_back({modules_.size() - 1, f.name, source_name_of(f.name)});
    for (const ptx::Variable& v : module.variables)
      if (v.bytes > 0 && (v.space == ptx::Space::global || v.space == ptx::Space::constant))
        variables_.push_back({modules_.size() - 1, v.name, source_name_of(v.name), v.bytes});
  };
  for (const std::string& path : given) add(path, read_file(path));
  if (!given.empty()) return;
  const JsonNode node =
      root.get("ptx", "the PTX file that holds the entries (nvcc -ptx writes it), or give it with --ptx");
  const auto named = [&](const JsonNode& name) {
    add(folder_.path_of(name.text()), folder_.read(name.text()));
  };
  if (node.is_string()) return named(node);
  for (const JsonNode& item : node.items(1)) named(item);
}

ExpressionScope LaunchFile::scope_of(const std::map<std::string, int64_t>& sizes) const {
  ExpressionScope scope;
  for (const NamedSize& size : sizes_) {
    const auto found = sizes.find(size.name);
    scope.variables[size.name] = static_cast<double>(found == sizes.end() ? size.value : found->second);
  }
  const ExpressionScope chosen = scope;
  for (const auto& [name, expression] : made_sizes_)
    scope.variables[name] = evaluate(expression, chosen, fmt::format("{} at /sizes/{}", path_, name));
  for (const auto& [name, value] : sizes)
    if (!chosen.variables.contains(name)) {
      std::string known;
      for (const NamedSize& size : sizes_) known += (known.empty() ? "" : ", ") + size.name;
      throw BadInput(fmt::format("{}: there is no size \"{}\"; there are: {}", path_, name,
                                 known.empty() ? "none" : known));
    }
  return scope;
}

bool LaunchFile::accepts(const std::map<std::string, int64_t>& sizes) const {
  if (!document_.contains("accepts")) return true;
  const JsonNode node = JsonNode(document_, "", path_).get("accepts", "");
  return evaluate(node.expression(), scope_of(sizes), node.place()) != 0;
}

/// Of a document with tensors that are variables.
constexpr size_t kMostVariables = 64, kMostTensors = 512;

/// One program made of the document.
class ProgramMaker {
 public:
  ProgramMaker(const LaunchFile& file, const std::map<std::string, int64_t>& sizes, uint64_t seed,
               bool large_stay)
      : file_(file),
        large_stay_(large_stay),
        root_(file.document_, "", file.path_),
        scope_(file.scope_of(sizes)) {
    made_.name = file.name_, made_.seed = seed;
    for (const auto& [name, value] : scope_.variables) made_.sizes[name] = static_cast<int64_t>(value);
    made_.program.name = file.name_;
    made_.program.modules = file.modules_;
  }

  Capsule make() {
    if (root_.has("tensors"))
      for (const auto& [name, node] : root_.get("tensors", "").members()) add_tensor(name, node);
    for (const JsonNode& node : root_.get("launches", "what runs, in order").items(1)) add_step(node);
    if (root_.has("recorded")) made_.recorded = file_.folder_.read_tensors(root_.get("recorded", "").text());
    return std::move(made_);
  }

 private:
  void add_tensor(const std::string& name, const JsonNode& node) {
    LaunchTensor read = read_launch_tensor(name, node, scope_, file_.folder_, made_.seed, large_stay_);
    Tensor& shape = shapes_[name];
    shape.name = name, shape.dtype = read.tensor.dtype, shape.axes = read.tensor.axes;
    using Use = LaunchTensor::Use;
    Program& program = made_.program;
    if (read.use == Use::workspace) program.workspaces.push_back({name, read.tensor.bytes(), ""});
    if (read.use == Use::out || read.use == Use::in_out)
      program.outputs.push_back({name, read.tensor.dtype, read.tensor.axes});
    if (read.drawn) made_.drawn[name] = *read.drawn;
    if (read.fixed) made_.fixed.insert(name);
    if (read.partly) made_.partly.insert(name);
    if (read.layout) program.layouts[name] = *read.layout;
    if (!read.storage.empty()) program.aliases.push_back({name, read.storage, read.offset});
    if (!read.variable.empty()) place_variable(name, node.get("variable", ""), read);
    if (read.holds) made_.inputs[name] = std::move(read.tensor);
  }

  /// The tensor's buffer lies where the variable does, for all launches.
  void place_variable(const std::string& name, const JsonNode& node, const LaunchTensor& read) {
    // Above what the others get, of which none is larger than the gap between two.
    constexpr uint64_t kFirst = 0x7000'0000'0000, kApart = 0x10'0000'0000;
    if (made_.program.places.size() == kMostVariables || root_.get("tensors", "").size() > kMostTensors)
      node.fail(fmt::format("at most {} variables, of {} tensors", kMostVariables, kMostTensors));
    std::string known;
    for (const LaunchFile::Variable& v : file_.variables_) {
      if (v.name != read.variable && v.source_name != read.variable) {
        known += (known.empty() ? "" : ", ") + v.source_name;
        continue;
      }
      if (v.bytes != read.tensor.bytes())
        node.fail(fmt::format("the variable \"{}\" has {} bytes, the tensor {}", read.variable, v.bytes,
                              read.tensor.bytes()));
      std::map<std::string, uint64_t>& places = made_.program.modules[v.module].places;
      const uint64_t at = kFirst + made_.program.places.size() * kApart;
      if (!places.emplace(v.name, at).second) node.fail("another tensor is that variable already");
      made_.program.places[name] = at;
      return;
    }
    node.fail(fmt::format("no PTX file has a variable \"{}\" in global or constant memory; there are: {}",
                          read.variable, known.empty() ? "none" : known));
  }

  std::array<uint32_t, 3> extent(const JsonNode& node) const {
    std::array<uint32_t, 3> made{1, 1, 1};
    if (!node.is_array()) {
      made[0] =
          static_cast<uint32_t>(evaluate_integer(node.expression(), scope_, node.place(), 1, 0x7fffffff));
      return made;
    }
    const auto items = node.items(1);
    if (items.size() > 3) node.fail(fmt::format("expected at most 3 entries, got {}", items.size()));
    for (size_t i = 0; i < items.size(); ++i)
      made[i] = static_cast<uint32_t>(
          evaluate_integer(items[i].expression(), scope_, items[i].place(), 1, 0x7fffffff));
    return made;
  }

  void add_step(const JsonNode& node) {
    if (node.is_object() && node.has("fill")) return add_fill_step(node);
    if (node.is_object() && node.has("copy")) return add_copy_step(node);
    node.keys({"function", "grid", "block", "cluster", "shared", "cooperative", "arguments"});
    Launch launch;
    const auto& entry = find(node.get("function", "the entry to launch, by its name in PTX or in C++"));
    launch.module = file_.modules_[entry.module].name, launch.function = entry.name;
    launch.grid = extent(node.get("grid", "blocks in x, y, z, as expressions"));
    launch.block = extent(node.get("block", "threads in x, y, z, as expressions"));
    if (node.has("cluster")) launch.cluster = extent(node.get("cluster", ""));
    if (node.has("shared")) {
      const JsonNode shared = node.get("shared", "");
      launch.shared_bytes =
          static_cast<uint32_t>(evaluate_integer(shared.expression(), scope_, shared.place(), 0, 1 << 20));
    }
    if (node.has("cooperative")) launch.cooperative = node.get("cooperative", "").boolean();
    for (const JsonNode& item : node.get("arguments", "one per parameter of the entry, in order").items())
      launch.arguments.push_back(read_launch_argument(item, scope_, shapes_));
    made_.program.launches.push_back(std::move(launch));
  }

  PointerArgument place(const JsonNode& node) const {
    const Argument argument = read_launch_argument(node, scope_, shapes_);
    const std::optional<PointerArgument> pointer = pointer_of(argument);
    if (!pointer || pointer->buffer.empty()) node.fail("expected a tensor's name, or {\"pointer\": ..}");
    return *pointer;
  }
  int64_t bytes_of(const JsonNode& node, const PointerArgument& at) const {
    if (!node.has("bytes")) return shapes_.at(at.buffer).bytes() - at.offset;
    const JsonNode bytes = node.get("bytes", "");
    return evaluate_integer(bytes.expression(), scope_, bytes.place(), 0, kLargestSize);
  }
  void add_fill_step(const JsonNode& node) {
    node.keys({"fill", "bytes", "pattern", "width"});
    const PointerArgument to = place(node.get("fill", ""));
    const auto pattern =
        node.has("pattern") ? static_cast<uint32_t>(node.get("pattern", "").whole(0, 0xffffffff)) : 0;
    const int width = node.has("width") ? static_cast<int>(node.get("width", "").whole(1, 4)) : 1;
    add_fill(made_.program, to, bytes_of(node, to), pattern, width);
  }
  void add_copy_step(const JsonNode& node) {
    node.keys({"copy", "to", "bytes"});
    const PointerArgument from = place(node.get("copy", "")), to = place(node.get("to", "where to"));
    add_copy(made_.program, from, to, bytes_of(node, from));
  }

  /// By its name in PTX, by its whole name in C++, or by that without arguments, with or without those of its
  /// template, where only one has it.
  const LaunchFile::Entry& find(const JsonNode& node) const {
    const std::string name = node.text();
    std::vector<const LaunchFile::Entry*> found;
    std::string known;
    for (const auto& entry : file_.entries_) {
      if (entry.name == name || entry.source_name == name) return entry;
      if (instance_name_of(entry.source_name) == name || base_name_of(entry.source_name) == name)
        found.push_back(&entry);
      known += (known.empty() ? "" : ", ") + entry.source_name;
    }
    if (found.size() == 1) return *found.front();
    if (found.size() > 1) {
      known.clear();
      for (const auto* entry : found) known += (known.empty() ? "" : ", ") + entry->source_name;
      node.fail(fmt::format("several entries are called \"{}\": {}; write one of these", name, known));
    }
    node.fail(
        fmt::format("no PTX file has an entry \"{}\"; there are: {}", name, known.empty() ? "none" : known));
  }

  const LaunchFile& file_;
  const bool large_stay_;
  const JsonNode root_;
  const ExpressionScope scope_;
  std::map<std::string, Tensor> shapes_;
  Capsule made_;
};

Capsule LaunchFile::make(const std::map<std::string, int64_t>& sizes, uint64_t seed, bool large_stay) const {
  return ProgramMaker(*this, sizes, seed, large_stay).make();
}

}  // namespace assay
