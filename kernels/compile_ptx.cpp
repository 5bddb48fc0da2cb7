#include "kernels/compile_ptx.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "kernels/inline_calls.h"
#include "kernels/packed_text.h"
#include "kernels/prepare_ptx.h"
#include "src/base/document/whole_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::atomic<int64_t> compiling_ns = 0;
thread_local int64_t compiling_here_ns = 0;

std::mutex listener_mutex;
std::function<void(const std::string&, bool)> listener;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A source that is called *_hopper.cu uses what only sm_90a has; the others run on every GPU since sm_80.
std::string flags_of(const std::string& module, Compiled how) {
  const char* target = source_path(module).ends_with("_hopper.cu") ? "90a" : "80";
  return fmt::format("-ptx -arch=compute_{} -std=c++17 -fmad=false {}", target,
                     how == Compiled::optimised ? "-lineinfo" : "-G");
}
/// Before a source that is compiled plainly: what nvcc would inline has no word of where it was called from.
constexpr const char* calls_stay = "#undef __forceinline__\n#define __forceinline__ __inline__\n#line 1\n";

constexpr const char* inlining_version = "3";  // another one where inline_calls changes what it writes
constexpr const char* cache_version = "7";     // another one where prepare_ptx changes what it writes

/// The compiler of the build comes before others: it was seen to work, and the program's own modules are its.
fs::path find_nvcc() {
  if (const std::string given = environment("ASSAY_NVCC"); !given.empty()) return given;
  std::vector<fs::path> places = {ASSAY_BUILD_NVCC};
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) places.push_back(fs::path(folder) / "nvcc");
  places.emplace_back("/usr/local/cuda/bin/nvcc");
  for (const fs::path& place : places)
    if (std::error_code error; fs::is_regular_file(place, error)) return place;
  return {};
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

fs::path cache_folder() {
  if (const std::string given = environment("ASSAY_CACHE"); !given.empty()) return given;
  const fs::path built = ASSAY_BUILD_CACHE;
  if (access(built.parent_path().c_str(), W_OK) == 0) return built;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "assay";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache/assay";
  return fs::temp_directory_path() / "assay";
}

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What `nvcc --version` closes with ("Build cuda_13.0.r13.0/..."); empty: there is no such program.
std::string said_version(const fs::path& nvcc) {
  std::string text, last;
  if (FILE* const pipe = popen((quoted(nvcc.string()) + " --version 2>/dev/null").c_str(), "r")) {
    std::array<char, 256> part;
    while (std::fgets(part.data(), part.size(), pipe)) text += part.data();
    pclose(pipe);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) last = line;
  return last;
}

/// Another compiler, or one that was replaced, has another; empty: there is none.
std::string identity_of(const fs::path& nvcc) {
  std::error_code no_size, no_time;
  const auto bytes = fs::file_size(nvcc, no_size);
  const auto written = fs::last_write_time(nvcc, no_time).time_since_epoch().count();
  return no_size || no_time ? "" : fmt::format("{} {} {}", nvcc.string(), bytes, written);
}

/// The compiler's version: asked once, then noted among what was compiled, as asking takes longer than many a
/// run. Where there is no nvcc, that of the build, so that what was compiled is still found.
const std::string& nvcc_version() {
  static const std::string version = [] {
    const fs::path nvcc = find_nvcc(), note = cache_folder() / "nvcc.version";
    const std::string identity = identity_of(nvcc);
    if (identity.empty()) return std::string(ASSAY_BUILD_NVCC_VERSION);
    if (const std::string known = read_file(note); known.starts_with(identity + '\n'))
      return known.substr(identity.size() + 1);
    const std::string said = said_version(nvcc);
    if (said.empty()) return std::string(ASSAY_BUILD_NVCC_VERSION);
    write_whole(note, identity + '\n' + said);  // where it cannot, the next process asks again
    return said;
  }();
  return version;
}

/// FNV-1a over everything the result depends on: 128 bits in two lanes with different bases.
std::string digest(const std::string& text) {
  uint64_t a = 0xcbf29ce484222325, b = 0x9ae16a3b2f90404f;
  for (const unsigned char byte : text) a = (a ^ byte) * 0x100000001b3, b = (b ^ byte) * 0x880355f21e6d1965;
  return fmt::format("{:016x}{:016x}", a, b);
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
  const std::string& text = file->second;
  constexpr std::string_view start = "#include \"";
  for (size_t at = text.find(start); at != text.npos; at = text.find(start, at)) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    at += start.size();
    const std::string name = text.substr(at, text.find_first_of("\"\n", at) - at);
    if (begins_line)
      add_with_includes(all, (fs::path(path).parent_path() / name).lexically_normal().string(), to);
  }
}

/// Runs a command of the shell. Not std::system, which ignores SIGINT for as long as it waits: a signal to
/// this program alone would be lost. The command is in a group of its own, so that Ctrl-C means this program,
/// which decides when it ends.
bool succeeds(std::string command) {
  std::string shell = "sh", run = "-c";
  std::array<char*, 4> arguments{shell.data(), run.data(), command.data(), nullptr};
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int refused = posix_spawn(&process, "/bin/sh", nullptr, &own_group, arguments.data(), environ);
  posix_spawnattr_destroy(&own_group);
  if (refused != 0) return false;
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In place of CUDA's header, which nvcc would read before each source (the file says more).
constexpr const char* cuda_words = "kernels/device/cuda_instruction.cuh";

bool has_cuda_words(const SourceTree& sources) {
  return std::any_of(sources.begin(), sources.end(),
                     [](const auto& file) { return file.first == cuda_words; });
}

std::string compile(const SourceTree& sources, const std::string& module, Compiled how,
                    const fs::path& folder) {
  const fs::path nvcc = find_nvcc();
  if (nvcc.empty())
    throw CannotCompile(fmt::format(
        "compiling {} needs nvcc: set ASSAY_NVCC, add nvcc to PATH, or install the CUDA toolkit", module));
  const bool plainly = how == Compiled::plainly;
  for (const auto& [path, text] : sources)
    write_file(folder / path, plainly && path == source_path(module) ? calls_stay + text : text);
  std::string command = quoted(nvcc.string()) + ' ' + flags_of(module, how);
  for (const std::string& definition : module_definitions(module)) command += " -D" + quoted(definition);
  const fs::path source = folder / source_path(module);
  const fs::path raw = folder / "raw.ptx", log = folder / "log";
  const std::string files =
      fmt::format(" {} -o {} >{} 2>&1", quoted(source.string()), quoted(raw.string()), quoted(log.string()));
  const std::string words =
      fmt::format(" -D__CUDA_RUNTIME_H__ -include {}", quoted((folder / cuda_words).string()));
  const bool short_of_words = plainly || !has_cuda_words(sources) || !succeeds(command + words + files);
  if (short_of_words && !succeeds(command + files))
    throw CannotCompile(
        fmt::format("{} could not compile {}: {}", nvcc.string(), module, first_error(read_file(log))));
  const std::string text = read_file(raw);
  return prepare_ptx(plainly ? inline_calls(text) : text, folder.string());
}

/// Counts the time of its scope as compilation, waiting for another thread's included.
class Stopwatch {
 public:
  Stopwatch() = default;
  ~Stopwatch() {
    const int64_t spent = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
    compiling_ns += spent;
    compiling_here_ns += spent;
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void tell_listener(const std::string& module, bool compiled) {
  const std::scoped_lock lock(listener_mutex);
  if (listener) listener(module, compiled);
}

/// Waits until no other process compiles what this file stands for, and keeps them waiting. Where a file
/// system has no locks nobody waits.
class Turn {
 public:
  explicit Turn(const fs::path& lock) : lock_(lock) {
    std::error_code ignored;
    fs::create_directories(lock.parent_path(), ignored);
    file_ = open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Turn() {
    unlink(lock_.c_str());
    if (file_ >= 0) close(file_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const fs::path lock_;
  int file_ = -1;
};

/// Nothing where it is not kept whole.
std::shared_ptr<const std::string> kept_text(const fs::path& kept) {
  if (std::error_code error; fs::is_regular_file(kept, error))
    if (std::optional<std::string> text = unpacked(read_file(kept)))
      return std::make_shared<const std::string>(*std::move(text));
  return nullptr;
}

/// The module as kept in `cache`, else compiled and kept: by the first process that asks, while others wait
/// for it. Should two compile it all the same, each does so in a folder of its own, and the result is moved
/// into place in one step. What cannot be read whole is compiled anew.
std::shared_ptr<const std::string> kept_or_compiled(const SourceTree& sources, const std::string& module,
                                                    Compiled how, const fs::path& cache,
                                                    const std::string& name) {
  const fs::path kept = cache / (name + ".ptx.z");
  if (auto text = kept_text(kept)) return text;
  const Turn turn(cache / (name + ".lock"));
  if (auto text = kept_text(kept)) return text;
  tell_listener(module, false);
  const fs::path folder = cache / fmt::format("{}.{}", name, getpid());
  std::string result = compile(sources, module, how, folder);
  write_file(folder / "packed", packed(result));
  fs::rename(folder / "packed", kept);
  fs::remove_all(folder);
  tell_listener(module, true);
  return std::make_shared<const std::string>(std::move(result));
}

}  // namespace

std::vector<std::string> module_definitions(const std::string& module) {
  if (module.find('.') == module.npos) return {};
  std::istringstream name(module.substr(module.find('.') + 1));
  std::string element, gate;
  std::getline(name, element, '.');
  std::getline(name, gate, '.');
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
  std::vector<std::string> definitions = {"ELEMENT=" + type(element)};
  if (!gate.empty()) definitions.push_back("GATE=" + policy(gate));
  return definitions;
}

double seconds_compiling() {
  return static_cast<double>(compiling_ns) * 1e-9;
}

double seconds_compiling_here() {
  return static_cast<double>(compiling_here_ns) * 1e-9;
}

void on_compilation(std::function<void(const std::string&, bool)> said) {
  const std::scoped_lock lock(listener_mutex);
  listener = std::move(said);
}

std::string source_path(const std::string& module) {
  return "kernels/" + module.substr(0, module.find('.')) + ".cu";
}

SourceTree with_includes(const SourceTree& sources, const std::string& path) {
  SourceTree result;
  add_with_includes(sources, path, result);
  add_with_includes(sources, cuda_words, result);
  return result;
}

std::shared_ptr<const std::string> compile_module(const SourceTree& tree, const std::string& module,
                                                  Compiled how) {
  const SourceTree sources = with_includes(tree, source_path(module));
  std::string key = fmt::format("{} {} {} {}", module, flags_of(module, how), cache_version, nvcc_version());
  if (how == Compiled::plainly) key += fmt::format(" {} {}", calls_stay, inlining_version);
  for (const std::string& definition : module_definitions(module)) key += ' ' + definition;
  for (const auto& [path, text] : sources) key += '\0' + path + '\0' + text;
  const std::string name = digest(key);

  struct Text {
    std::mutex mutex;
    std::shared_ptr<const std::string> text;
  };
  static std::mutex mutex;
  static std::map<std::string, Text> modules;
  std::unique_lock all(mutex);
  Text& compiled = modules[name];
  all.unlock();
  const Stopwatch waiting;
  const std::scoped_lock lock(compiled.mutex);  // of this module: others compile beside it
  if (!compiled.text) compiled.text = kept_or_compiled(sources, module, how, cache_folder(), name);
  return compiled.text;
}

}  // namespace assay
