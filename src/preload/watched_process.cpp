#include "src/preload/watched_process.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_place.h"
#include "src/base/ptx/fatbin.h"
#include "src/base/watch/birth_json.h"
#include "src/base/watch/own_registers.h"
#include "src/preload/fat_binary.h"

namespace assay::preload {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{64} << 20, kPiece = size_t{1} << 20;
/// Where the buffer is if nothing else is there: its address stands in watched texts, and what was compiled
/// of the same text can be taken again.
void* const kUsualPlace = reinterpret_cast<void*>(uint64_t{0x1a55} << 32);
constexpr unsigned kPortableMapped = 1 | 2;

json options_from_environment() {
  const char* const text = std::getenv("ASSAY_WATCH");
  return text && *text ? json::parse(text) : json::object();
}

/// The driver's compiler takes PTX 9.0 from CUDA 13.0 on.
bool driver_marks_cold() {
  static const bool known = [] {
    int version = 0;
    const auto ask = reinterpret_cast<int (*)(int*)>(next_function("cuDriverGetVersion"));
    return ask && ask(&version) == 0 && version >= 13000;
  }();
  return known;
}

/// What machine code in the same fat binary says of the entries: it was compiled of the same text.
std::map<std::string, int> registers_beside(std::string_view fat_binary) {
  std::map<std::string, int> most;
  try {
    for (const std::string& code : ptx::embedded_machine_code(fat_binary, "fat binary"))
      for (const auto& [entry, registers] : watch::registers_of(code))
        most[entry] = std::max(most[entry], registers);
  } catch (const BadInput&) {
    most.clear();
  }
  return most;
}

bool is_ptx(const char* text) {
  return std::strncmp(text, "//", 2) == 0 || std::strncmp(text, ".version", 8) == 0 || text[0] == '\n';
}

int keep_name(dl_phdr_info* object, size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(object->dlpi_name);
  return 0;
}

/// Of a library that is loaded for another alone (RTLD_LOCAL), as a Python extension's own runtime is.
void* locally_loaded(const char* name) {
  Dl_info own{}, other{};
  dladdr(reinterpret_cast<void*>(&next_function), &own);
  std::vector<std::string> objects;
  dl_iterate_phdr(keep_name, &objects);
  for (const std::string& object : objects) {
    void* const handle = object.empty() ? nullptr : dlopen(object.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    void* const found = handle ? dlsym(handle, name) : nullptr;
    if (handle) dlclose(handle);  // it stays for whom it was loaded
    if (found && dladdr(found, &other) != 0 && other.dli_fbase != own.dli_fbase) return found;
  }
  return nullptr;
}

}  // namespace

void* next_function(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  if (void* const found = locally_loaded(name)) return found;
  static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  return driver ? dlsym(driver, name) : nullptr;
}

WatchedProcess& WatchedProcess::get() {
  static WatchedProcess process;
  return process;
}

WatchedProcess::WatchedProcess()
    : options_(options_from_environment()), compiled_(options_.value("compiled", std::string())) {
  watch_.kept_registers = options_.value("kept", watch_.kept_registers);
  watch_.kept_blocks = options_.value("blocks", watch_.kept_blocks);
  watch_.least_repeated = options_.value("repeated", watch_.least_repeated);
  void* const made = mmap(kUsualPlace, kMostBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made != MAP_FAILED) buffer_ = static_cast<std::byte*>(made);
  watch_.buffer_address = reinterpret_cast<uint64_t>(buffer_);
}

WatchedProcess::~WatchedProcess() {
  look();
  write_result();
}

std::string WatchedProcess::watched(const std::string& text, const std::string& path, bool marks_cold,
                                    int own_registers,
                                    const std::map<std::string, int>& registers_of_entries) {
  watch::WatchOptions options = watch_;
  options.marks_cold_code = marks_cold, options.own_registers = own_registers;
  options.registers_of_entries = registers_of_entries;
  std::vector<Given> given;
  return watched(text, path, std::move(options), given);
}

std::string WatchedProcess::watched(const std::string& text, const std::string& path,
                                    watch::WatchOptions options, std::vector<Given>& given) {
  const std::lock_guard lock(mutex_);
  if (!buffer_) return text;
  try {
    auto parsed = std::make_shared<ptx::Module>(ptx::parse_functions(text, path));
    watch::WatchedText made = watch::rewritten(text, *parsed, options, sites_);
    const auto more = static_cast<int32_t>(made.sites.size());
    const size_t bytes = watch::buffer_bytes(static_cast<uint64_t>(sites_ + more));
    if (bytes > kMostBytes) {
      unwatched_.push_back(path + ": the buffer is full");
      return text;
    }
    given.push_back({parsed, made.counts});
    modules_.push_back({std::move(parsed), std::move(made.sites), sites_});
    sites_ += more, used_ = bytes;
    add(made.counts, 1);
    unwatched_.insert(unwatched_.end(), made.unwatched.begin(), made.unwatched.end());
    return std::move(made.ptx);
  } catch (const BadInput& error) {
    unwatched_.push_back(error.what());
    return text;
  }
}

const void* WatchedProcess::watched_image(const void* image) {
  if (!image) return nullptr;
  watch::WatchOptions options = watch_;
  options.marks_cold_code = driver_marks_cold();
  std::vector<Given> given;
  if (const size_t bytes = fat_binary_bytes(image)) {
    options.registers_of_entries = registers_beside({static_cast<const char*>(image), bytes});
    std::vector<std::byte> made = with_texts(
        image,
        [&](const std::string& text, const std::string& path) { return watched(text, path, options, given); },
        [&](const std::string& text, int capability) { return compiled_.kept(text, capability); });
    if (made.empty()) return ++left_out_, nullptr;
    const std::lock_guard lock(mutex_);
    const void* const kept = images_.emplace_back(std::move(made)).data();
    given_[kept] = std::move(given);
    return kept;
  }
  const char* const text = static_cast<const char*>(image);
  if (!is_ptx(text)) return ++left_out_, nullptr;
  // Compiled as it is, it says how many registers its entries have.
  if (options.marks_cold_code) options.registers_of_entries = watch::registers_of(compiled_.compiled(text));
  std::string made = watched(text, "module", options, given);
  if (std::string code = compiled_.keeps() ? compiled_.compiled(made) : ""; !code.empty()) made.swap(code);
  const std::lock_guard lock(mutex_);
  const void* const kept = texts_.emplace_back(std::move(made)).c_str();
  given_[kept] = std::move(given);
  return kept;
}

void WatchedProcess::refused(const void* watched_image, int status) {
  const std::lock_guard lock(mutex_);
  for (const Given& given : given_[watched_image]) {
    std::erase_if(modules_, [&](const watch::WatchedModule& m) { return m.original == given.module; });
    add(given.counts, -1);
    const std::string kernel = given.module->functions.empty() ? "" : given.module->functions[0].name;
    const std::string line =
        fmt::format("{} of {}: the driver refuses it with the watch in it (error {}); it runs as it is",
                    given.module->path, kernel, status);
    if (std::find(unwatched_.begin(), unwatched_.end(), line) == unwatched_.end()) unwatched_.push_back(line);
  }
  given_.erase(watched_image);
}

void WatchedProcess::add(const watch::WatchCounts& counts, int times) {
  counts_.instructions += times * counts.instructions, counts_.watched += times * counts.watched;
  counts_.added += times * counts.added, counts_.added_aside += times * counts.added_aside;
}

bool WatchedProcess::is_left_out(const void* code) {
  Dl_info info{};
  if (!dladdr(code, &info) || !info.dli_fname) return false;
  for (const char* name : {"/libtorch", "/libcublas", "/libcudnn", "/libcusparse", "/libcusolver",
                           "/libcufft", "/libcurand", "/libnccl", "/libnvrtc"})
    if (std::strstr(info.dli_fname, name)) return ++left_out_, true;
  return false;
}

void WatchedProcess::launching(Register make_known) {
  const std::lock_guard lock(mutex_);
  if (!buffer_ || !make_known) return;
  if (used_ > registered_) {
    const size_t upto = std::min((used_ + kPiece - 1) / kPiece * kPiece, kMostBytes);
    if (make_known(buffer_ + registered_, upto - registered_, kPortableMapped) == 0) registered_ = upto;
  }
  std::memcpy(buffer_ + watch::place::current_launch, &launches_, sizeof launches_);
  ++launches_;
}

void WatchedProcess::look() {
  const std::lock_guard lock(mutex_);
  uint32_t noted = 0;
  if (!buffer_) return;
  std::memcpy(&noted, buffer_ + watch::place::noted, sizeof noted);
  if (noted == told_) return;
  told_ = noted;
  for (const watch::NotedBirth& birth : watch::noted_births(modules_, {buffer_, used_})) {
    const auto number = static_cast<size_t>(birth.record.site) * watch::kRecordsPerSite +
                        static_cast<size_t>(birth.record.born);
    if (is_told_.size() <= number) is_told_.resize(number + 1);
    if (!is_told_[number]) tell(birth);
    is_told_[number] = true;
  }
}

void WatchedProcess::tell(const watch::NotedBirth& birth) {
  const watch::Record& r = birth.record;
  fmt::print(stderr, "assay: {} at {}, launch {}: {}  {}; block ({},{},{}), thread ({},{},{})\n", birth.kind,
             place_with_ptx_line(birth.where), r.launch, birth.instruction, birth.example, r.block[0],
             r.block[1], r.block[2], r.thread[0], r.thread[1], r.thread[2]);
}

json WatchedProcess::result() {
  const std::lock_guard lock(mutex_);
  json births = json::array();
  if (buffer_)
    for (const watch::NotedBirth& birth : watch::noted_births(modules_, {buffer_, used_}))
      births.push_back(watch::to_json(birth));
  return {{"births", births},           {"counts", watch::to_json(counts_)},
          {"unwatched", unwatched_},    {"left_out", left_out_.load()},
          {"modules", modules_.size()}, {"launches", launches_}};
}

void WatchedProcess::write_result() {
  if (options_.contains("result")) std::ofstream(options_.at("result").get<std::string>()) << result().dump();
}

}  // namespace assay::preload
