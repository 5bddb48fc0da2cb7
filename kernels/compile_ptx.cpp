#include "kernels/compile_ptx.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "kernels/prepare_ptx.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::atomic<int64_t> compiling_ns = 0;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr const char* flags = "-ptx -arch=compute_80 -std=c++17 -fmad=false -lineinfo";
constexpr const char* cache_version = "6";  // another one where prepare_ptx changes what it writes

fs::path find_nvcc() {
  if (const std::string given = environment("ASSAY_NVCC"); !given.empty()) return given;
  std::vector<fs::path> folders;
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders)
    if (std::error_code error; fs::is_regular_file(folder / "nvcc", error)) return folder / "nvcc";
  if (std::error_code error; fs::is_regular_file(ASSAY_BUILD_NVCC, error)) return ASSAY_BUILD_NVCC;
  throw CannotCompile(
      "compiling a kernel with a defect needs nvcc: set ASSAY_NVCC, add nvcc to PATH, or install the CUDA "
      "toolkit");
}

fs::path cache_folder() {
  if (const std::string given = environment("ASSAY_CACHE"); !given.empty()) return given;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "assay";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache/assay";
  return fs::temp_directory_path() / "assay";
}

/// FNV-1a over everything the result depends on but the compiler: 128 bits in two lanes with different bases.
std::string digest(const std::string& text) {
  uint64_t a = 0xcbf29ce484222325, b = 0x9ae16a3b2f90404f;
  for (const unsigned char byte : text) a = (a ^ byte) * 0x100000001b3, b = (b ^ byte) * 0x880355f21e6d1965;
  return fmt::format("{:016x}{:016x}", a, b);
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed)
    throw CannotCompile(
        fmt::format("{}: cannot make this folder ({}); name one for compiled kernels in ASSAY_CACHE",
                    path.parent_path().string(), failed.message()));
  std::ofstream out(path, std::ios::binary);
  if (!(out << text).flush()) throw CannotCompile(fmt::format("cannot write {}", path.string()));
}

/// The first line of a log that speaks of an error, else its first line.
std::string first_error(const std::string& log) {
  std::istringstream lines(log);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    if (line.find("error") != line.npos) return line;
  }
  return first.empty() ? "no message" : first;
}

/// Adds `path` and what its lines `#include "..."` name, relative to its folder.
void add_with_includes(const SourceTree& all, const std::string& path, SourceTree& to) {
  const auto has_path = [&](const auto& file) { return file.first == path; };
  if (std::any_of(to.begin(), to.end(), has_path)) return;
  const auto file = std::find_if(all.begin(), all.end(), has_path);
  if (file == all.end()) return;  // the compiler says so
  to.push_back(*file);
  std::istringstream lines(file->second);
  constexpr std::string_view start = "#include \"";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start)) {
      const std::string name = line.substr(start.size(), line.find('"', start.size()) - start.size());
      add_with_includes(all, (fs::path(path).parent_path() / name).lexically_normal().string(), to);
    }
}

std::string compile(const SourceTree& sources, const std::string& module, const fs::path& folder) {
  const fs::path nvcc = find_nvcc();
  for (const auto& [path, text] : sources) write_file(folder / path, text);
  std::string command = quoted(nvcc.string()) + ' ' + flags;
  for (const std::string& definition : module_definitions(module)) command += " -D" + quoted(definition);
  const fs::path source = folder / source_path(module);
  const fs::path raw = folder / "raw.ptx", log = folder / "log";
  command +=
      fmt::format(" {} -o {} >{} 2>&1", quoted(source.string()), quoted(raw.string()), quoted(log.string()));
  if (std::system(command.c_str()) != 0)
    throw CannotCompile(
        fmt::format("{} could not compile {}: {}", nvcc.string(), module, first_error(read_file(log))));
  return prepare_ptx(read_file(raw), folder.string());
}

}  // namespace

std::vector<std::string> module_definitions(const std::string& module) {
  if (module.find('.') == module.npos) return {};
  std::istringstream name(module.substr(module.find('.') + 1));
  std::string element, gate;
  std::getline(name, element, '.');
  std::getline(name, gate, '.');
  const std::string widths = element == "bf16" ? "3" : element == "fp16" ? "2" : "1";
  const auto type = [](std::string format) {  // "bf16" is Bf16 in kernels/device/format.cuh
    format[0] = static_cast<char>(format[0] - 'a' + 'A');
    return format;
  };
  const auto policy = [&](const std::string& gates) {  // "token-bf16" is TokenGate<Bf16> in device/gate.cuh
    const size_t dash = gates.find('-');
    if (dash != gates.npos) return type(gates.substr(0, dash)) + "Gate<" + type(gates.substr(dash + 1)) + ">";
    if (gates == "none") return std::string("NoGate");
    if (gates == "fixed") return std::string("FixedHeadGate");
    return gates == "head" ? std::string("HeadGate") : type(gates);
  };
  return {"ELEMENT=" + type(element), "GATE=" + policy(gate), "WIDTHS=" + widths};
}

double seconds_compiling() {
  return static_cast<double>(compiling_ns) * 1e-9;
}

std::string source_path(const std::string& module) {
  return "kernels/" + module.substr(0, module.find('.')) + ".cu";
}

SourceTree with_includes(const SourceTree& sources, const std::string& path) {
  SourceTree result;
  add_with_includes(sources, path, result);
  return result;
}

std::shared_ptr<const std::string> compile_module(const SourceTree& tree, const std::string& module) {
  const SourceTree sources = with_includes(tree, source_path(module));
  std::string key = fmt::format("{} {} {}", module, flags, cache_version);
  for (const std::string& definition : module_definitions(module)) key += ' ' + definition;
  for (const auto& [path, text] : sources) key += '\0' + path + '\0' + text;
  const std::string name = digest(key);

  struct Compiled {
    std::mutex mutex;
    std::shared_ptr<const std::string> text;
  };
  static std::mutex mutex;
  static std::map<std::string, Compiled> modules;
  std::unique_lock all(mutex);
  Compiled& compiled = modules[name];
  all.unlock();
  const std::scoped_lock lock(compiled.mutex);  // of this module: others compile beside it
  std::shared_ptr<const std::string>& text = compiled.text;
  if (text) return text;

  // Two processes may compile the same module: each in its own folder, the result moved into place in one
  // step.
  const fs::path cached = cache_folder() / (name + ".ptx");
  if (std::error_code error; fs::is_regular_file(cached, error)) {
    text = std::make_shared<const std::string>(read_file(cached));
    return text;
  }
  const fs::path folder = cache_folder() / fmt::format("{}.{}", name, getpid());
  const auto start = std::chrono::steady_clock::now();
  const std::string result = compile(sources, module, folder);
  compiling_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  write_file(folder / "prepared.ptx", result);
  fs::rename(folder / "prepared.ptx", cached);
  fs::remove_all(folder);
  text = std::make_shared<const std::string>(result);
  return text;
}

}  // namespace assay
