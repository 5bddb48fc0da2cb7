#include "src/standin/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/fnv.h"
#include "src/base/ptx/fatbin.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/device_heap.h"
#include "src/result/verification.h"
#include "src/verification/verify/verdict.h"

namespace assay::standin {
namespace {

using nlohmann::json;

json options_from_environment() {
  const char* const text = std::getenv("ASSAY_RUN");
  return text && *text ? json::parse(text) : json::object();
}

/// A number that orders targets: "sm_90a" -> 90.
int number_of(const std::string& target) {
  const size_t digits = target.find_first_of("0123456789");
  return digits == target.npos ? 0 : std::atoi(target.c_str() + digits);
}

/// The finding of a launch that was not judged.
Verification trapped(const std::string& name, const std::string& arch, const json& trap) {
  Verification v;
  v.kernel = name, v.backend = "vm " + arch, v.verdict = Verdict::finding;
  v.program.emplace();
  JsonReader reader{trap, ""};
  fields(reader, v.trap.emplace());
  return v;
}

size_t aligned(size_t bytes) {
  return (bytes + 511) / 512 * 512;
}

Status status_of(const json& trap) {
  const std::string kind = trap.at("kind");
  if (kind == "out-of-bounds" || kind == "misaligned") return kIllegalAddress;
  return kind == "assertion" ? kAssert : kLaunchFailure;
}

}  // namespace

Device& Device::get() {
  static Device device;
  return device;
}

Device::Device()
    : options_(options_from_environment()),
      gpu_(binding::gpu_of(options_.value("arch", "sm_90"))),
      result_(options_.value("result", "")) {
  options_["arch"] = gpu_.arch;
  follows_unwritten_ = vm::parse_checks(options_.value("checks", std::string("none"))).unwritten;
}

Device::~Device() {
  for (const auto& [address, allocation] : allocations_) note_digest(address, allocation);
  write_result();
}

/// FNV-1a of 64 bits, as tools/gpu_digests.c has it.
void Device::note_digest(uint64_t address, const Allocation& allocation) {
  if (!options_.contains("digests") || allocation.number == 0) return;
  const uint64_t hash = fnv1a({reinterpret_cast<const char*>(address), allocation.bytes});
  digests_[allocation.number] =
      fmt::format("allocation {}: {} bytes, {:016x}", allocation.number, allocation.bytes, hash);
}

void Device::write_result() {
  if (options_.contains("digests")) {
    std::ofstream out(options_.at("digests").get<std::string>());
    for (const auto& [number, line] : digests_) out << line << '\n';
  }
  if (result_.empty()) return;
  const json result = {{"launches", launches_},
                       {"findings", findings_},
                       {"said", said_},
                       {"notes", notes_},
                       {"lane_instructions", lane_instructions_},
                       {"seconds", seconds_}};
  std::ofstream(result_) << result.dump();
}

Status Device::allocate(size_t bytes, Place place, void** to) {
  if (!to) return fail(kInvalidValue);
  if (bytes == 0) return *to = nullptr, kSuccess;
  const std::lock_guard lock(mutex_);
  const int number = allocated_ + 1;
  *to = allocate(bytes, {bytes, place, number, fmt::format("allocation {}", number)});
  if (!*to) return last_ = kMemoryAllocation;
  allocated_ = number;
  return kSuccess;
}

void* Device::allocate(size_t bytes, Allocation allocation) {
  void* const made = std::aligned_alloc(512, aligned(bytes));
  if (!made) return nullptr;
  std::memset(made, 0xff, aligned(bytes));  // a NaN in every format: what is read before it is written shows
  if (follows_unwritten_ && allocation.number > 0 && allocation.place == Place::device)
    allocation.unwritten.add(0, bytes);
  allocations_[reinterpret_cast<uint64_t>(made)] = std::move(allocation);
  return made;
}

Status Device::free(void* address) {
  if (!address) return kSuccess;
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<uint64_t>(address));
  if (found == allocations_.end() || found->second.number == 0) return last_ = kInvalidValue;
  note_digest(found->first, found->second);
  allocations_.erase(found);
  std::free(address);
  return kSuccess;
}

Status Device::register_memory(void* address, size_t bytes) {
  if (!address || bytes == 0) return fail(kInvalidValue);
  const std::lock_guard lock(mutex_);
  registered_[reinterpret_cast<uint64_t>(address)] = bytes;
  return kSuccess;
}

Status Device::unregister_memory(void* address) {
  const std::lock_guard lock(mutex_);
  return registered_.erase(reinterpret_cast<uint64_t>(address)) ? kSuccess : last_ = kInvalidValue;
}

const Device::Allocation* Device::find(const void* address, uint64_t* base) {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uint64_t>(address);
  auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return nullptr;
  --after;
  if (at >= after->first + after->second.bytes) return nullptr;
  if (base) *base = after->first;
  return &after->second;
}

Status Device::check_range(const void* address, size_t bytes) {
  uint64_t base = 0;
  const Allocation* const of = find(address, &base);
  if (!of) return kSuccess;  // the host's
  const auto at = reinterpret_cast<uint64_t>(address);
  if (at + bytes <= base + of->bytes) return kSuccess;
  say(fmt::format("a copy or fill of {} bytes from byte {} of {}, which has {}", bytes, at - base, of->name,
                  of->bytes));
  return fail(kInvalidValue);
}

Status Device::copy(void* to, const void* from, size_t bytes) {
  for (const void* side : {static_cast<const void*>(to), from})
    if (const Status status = check_range(side, bytes)) return status;
  note_copy(to, from, bytes);
  std::memmove(to, from, bytes);
  return kSuccess;
}

Status Device::fill(void* to, uint32_t word, size_t bytes) {
  if (const Status status = check_range(to, bytes)) return status;
  for (size_t at = 0; at < bytes; at += sizeof word)
    std::memcpy(static_cast<char*>(to) + at, &word, std::min(sizeof word, bytes - at));
  note_copy(to, &word, bytes);
  return kSuccess;
}

Device::Allocation* Device::holder(const void* address, uint64_t* offset) {
  const auto at = reinterpret_cast<uint64_t>(address);
  const auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return nullptr;
  const auto found = std::prev(after);
  *offset = at - found->first;
  return *offset < found->second.bytes ? &found->second : nullptr;
}

/// What holds nothing yet goes along from one place of the device to the other; where it goes to the host,
/// the program reads what nothing wrote.
void Device::note_copy(const void* to, const void* from, size_t bytes) {
  if (!follows_unwritten_ || bytes == 0) return;
  const std::lock_guard lock(mutex_);
  uint64_t there = 0, here = 0;
  Allocation* const target = holder(to, &there);
  const Allocation* const source = holder(from, &here);
  const ByteSet taken = source ? source->unwritten.within(here, here + bytes) : ByteSet{};
  if (!target) {
    if (!taken.empty() && lost_ == kSuccess) tell_unwritten(*source, taken);
    return;
  }
  target->unwritten.remove(there, there + bytes);
  for (const ByteSpan& range : taken.spans())
    if (target->place == Place::device)
      target->unwritten.add(range.begin - here + there, range.end - here + there);
}

/// Once per allocation. Hosts copy whole buffers and use a part of them: a finding where that is asked for.
void Device::tell_unwritten(const Allocation& of, const ByteSet& taken) {
  if (!copied_unwritten_.insert(of.name).second) return;
  const std::string message = fmt::format(
      "{} of the bytes of {} that the program copies to the host were never written, from byte {} to byte {} "
      "of {}",
      taken.count(), of.name, taken.spans().front().begin, taken.spans().back().end - 1, of.bytes);
  if (!options_.value("copies", false)) return notes_.push_back(message);
  Verification v;
  v.kernel = fmt::format("copy of {} to the host", of.name), v.backend = fmt::format("vm {}", gpu_.arch);
  v.program.emplace();
  CheckReport& report = v.checks.emplace();
  report.ran = {CheckName::unwritten};
  CheckFinding& made = report.findings.emplace_back();
  made.check = CheckName::unwritten, made.kind = CheckKind::never_written;
  made.at.access = "not written", made.element = of.name, made.count = taken.count();
  made.message = message;
  decide(v);
  findings_.push_back(to_json(v));
}

namespace {

void load_fat_binary(LoadedCode& code, const FatBinaryWrapper& wrapper, const std::string& arch) {
  const auto* const header = static_cast<const FatBinaryHeader*>(wrapper.data);
  if (wrapper.magic != kWrapperMagic || !header || header->magic != kFatBinaryMagic)
    throw BadInput("a fat binary of another kind than the CUDA runtime's");
  const std::string_view bytes(reinterpret_cast<const char*>(header),
                               header->header_bytes + header->body_bytes);
  std::vector<ptx::EmbeddedText> texts = ptx::embedded_texts(bytes, "fat binary");
  int best = 0;
  for (ptx::EmbeddedText& text : texts) {
    auto module = binding::load_module(std::move(text.text), text.path);
    const int target = number_of(module->parsed->target);
    if (target > number_of(arch) || target < best) continue;
    if (target > best) code.modules.clear();
    best = target;
    code.modules.push_back(std::move(module));
  }
  if (code.modules.empty()) code.refused = fmt::format("no PTX in it is for {} or less", arch);
}

}  // namespace

LoadedCode* Device::load(const FatBinaryWrapper& wrapper) {
  auto code = std::make_unique<LoadedCode>();
  try {
    load_fat_binary(*code, wrapper, gpu_.arch);
  } catch (const std::exception& error) {
    code->refused = error.what();
  }
  return keep(std::move(code));
}

LoadedCode* Device::load_image(const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kFatBinaryMagic) return load({kWrapperMagic, 1, image, nullptr});
  if (magic == kWrapperMagic) return load(*static_cast<const FatBinaryWrapper*>(image));
  auto code = std::make_unique<LoadedCode>();
  try {
    if (magic == kElfMagic) throw BadInput("machine code without PTX");
    code->modules.push_back(binding::load_module(static_cast<const char*>(image), "module"));
  } catch (const std::exception& error) {
    code->refused = error.what();
  }
  return keep(std::move(code));
}

LoadedCode* Device::keep(std::unique_ptr<LoadedCode> code) {
  const std::lock_guard lock(mutex_);
  for (const auto& module : code->modules) place_variables(*module);
  codes_.push_back(std::move(code));
  return codes_.back().get();
}

/// Each is memory of its own, for as long as the program runs: launches find it there, and so does the host.
void Device::place_variables(assay_module& module) {
  std::vector<size_t> placed;
  for (size_t v = 0; v < module.parsed->variables.size(); ++v) {
    const ptx::Variable& variable = module.parsed->variables[v];
    if (variable.bytes == 0 ||
        (variable.space != ptx::Space::global && variable.space != ptx::Space::constant))
      continue;
    const auto bytes = static_cast<size_t>(variable.bytes);
    void* const at = allocate(bytes, {bytes, Place::device, 0, vm::source_name(variable.name)});
    if (!at) continue;
    module.source.places[variable.name] = reinterpret_cast<uint64_t>(at);
    placed.push_back(v);
  }
  const std::vector<uint64_t> addresses = vm::variable_addresses(*module.parsed, module.source.places);
  for (const size_t v : placed) {
    const std::vector<std::byte> initial = vm::initial_bytes(module.parsed->variables[v], addresses);
    std::memcpy(reinterpret_cast<void*>(addresses[v]), initial.data(), initial.size());
  }
}

Device::Allocation* Device::variable(const LoadedCode& code, const std::string& name, void** at) {
  for (const auto& module : code.modules)
    if (const auto placed = module->source.places.find(name); placed != module->source.places.end())
      return *at = reinterpret_cast<void*>(placed->second), &allocations_.at(placed->second);
  return nullptr;
}

void Device::name_variable(const void* host, const LoadedCode& code, const std::string& name) {
  const std::lock_guard lock(mutex_);
  void* at = nullptr;
  if (variable(code, name, &at)) variables_[host] = at;
}

void* Device::name_managed_variable(const LoadedCode& code, const std::string& name) {
  const std::lock_guard lock(mutex_);
  void* at = nullptr;
  if (Allocation* const found = variable(code, name, &at)) found->place = Place::managed, variables_[at] = at;
  return at;
}

const Device::Allocation* Device::find_variable(const LoadedCode& code, const std::string& name, void** at) {
  const std::lock_guard lock(mutex_);
  return variable(code, name, at);
}

Status Device::find_variable(const void* host, void** at, const Allocation** of) {
  const std::lock_guard lock(mutex_);
  const auto found = variables_.find(host);
  if (found == variables_.end()) return last_ = kInvalidSymbol;
  *at = found->second;
  *of = &allocations_.at(reinterpret_cast<uint64_t>(*at));
  return kSuccess;
}

void Device::name_kernel(const void* host_function, LoadedCode* code, const char* entry) {
  const std::lock_guard lock(mutex_);
  kernels_[host_function] = {code, entry};
}

const KernelHandle* Device::kernel(const void* host_function) {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(host_function);
  return found == kernels_.end() ? nullptr : &found->second;
}

namespace {

const assay_module* module_with(const KernelHandle& kernel) {
  for (const auto& module : kernel.code->modules)
    for (const ptx::Function& function : module->parsed->functions)
      if (function.entry && function.name == kernel.entry) return module.get();
  return nullptr;
}

}  // namespace

json Device::entry_of(const KernelHandle& kernel) {
  const assay_module* const module = module_with(kernel);
  return module ? binding::describe(*module).at("entries").at(kernel.entry) : json();
}

Status Device::launch(const KernelHandle& kernel, const LaunchRequest& request, void** arguments) {
  const assay_module* const module = module_with(kernel);
  if (!module) {
    say(fmt::format("{} cannot be launched: {}", kernel.entry,
                    kernel.code->refused.empty() ? "its PTX is not in the program" : kernel.code->refused));
    return fail(kInvalidDeviceFunction);
  }
  const std::lock_guard lock(mutex_);
  if (lost_ != kSuccess) return lost_;
  std::vector<assay_array> storages;
  for (const auto& [address, allocation] : allocations_) {
    assay_array& array = storages.emplace_back(assay_array{});
    array.struct_bytes = sizeof array, array.name = allocation.name.c_str();
    array.address = address, array.bytes = allocation.bytes, array.writable = 1, array.format = -1;
  }
  for (const auto& [address, bytes] : registered_) {
    assay_array& array = storages.emplace_back(assay_array{});
    array.struct_bytes = sizeof array, array.name = "registered memory";
    array.address = address, array.bytes = bytes, array.writable = 1, array.format = -1;
  }
  size_t count = 0;
  for (const ptx::Function& function : module->parsed->functions)
    if (function.entry && function.name == kernel.entry) count = function.parameters.size();
  const int64_t number = ++launches_[kernel.entry];
  json options = options_;
  options.erase("result"), options.erase("digests");
  options["name"] = fmt::format("{} (launch {})", kernel.entry, number);
  const std::string text = options.dump();
  std::map<uint64_t, ByteSet> unwritten;
  for (const auto& [address, allocation] : allocations_)
    if (!allocation.unwritten.empty()) unwritten[address] = allocation.unwritten;
  assay_launch launch{};
  launch.struct_bytes = sizeof launch, launch.entry = kernel.entry.c_str();
  const auto put = [](uint32_t(&to)[3], const Dim3& from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  put(launch.grid, request.grid), put(launch.block, request.block), put(launch.cluster, request.cluster);
  launch.shared_bytes = static_cast<uint32_t>(request.shared_bytes), launch.cooperative = request.cooperative;
  launch.arguments = arguments, launch.argument_count = count;
  std::byte none{};
  if (count == 0) launch.packed = &none, launch.packed_bytes = 0;
  if (request.packed) {
    launch.arguments = nullptr, launch.argument_count = 0;
    launch.packed = request.packed, launch.packed_bytes = request.packed_bytes;
  }
  launch.storages = storages.data(), launch.storage_count = storages.size();
  launch.options = text.c_str();
  try {
    const json answer = binding::launch(*module, launch, &heap_, &unwritten);
    for (auto& [address, left] : unwritten) allocations_.at(address).unwritten = std::move(left);
    for (const json& line : answer.at("printed")) std::fputs(line.get<std::string>().c_str(), stdout);
    lane_instructions_ += answer.at("lane_instructions").get<uint64_t>();
    seconds_ += answer.at("seconds").get<double>();
    const json& trap = answer.at("trap");
    const json& verification = answer.at("verification");
    if (verification.is_object()) {
      if (verification_from_json(verification).verdict != Verdict::pass) findings_.push_back(verification);
    } else if (trap.is_object()) {
      findings_.push_back(to_json(trapped(options["name"], gpu_.arch, trap)));
    }
    if (trap.is_object()) {
      fmt::print(stderr, "assay: {}: {}\n", options["name"].get<std::string>(), trap.value("message", ""));
      return lost_ = last_ = status_of(trap);
    }
    return kSuccess;
  } catch (const BadInput& error) {
    note(error.what());
    return last_ = kInvalidConfiguration;
  }
}

void Device::reset_heap() {
  const std::lock_guard lock(mutex_);
  heap_.reset();
}

Status Device::last(bool clear) {
  const std::lock_guard lock(mutex_);
  const Status was = lost_ != kSuccess ? lost_ : last_;
  if (clear) last_ = kSuccess;
  return was;
}

Status Device::fail(Status status) {
  const std::lock_guard lock(mutex_);
  return last_ = status;
}

void Device::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  note(line);
}

void Device::note(const std::string& line) {
  if (std::find(said_.begin(), said_.end(), line) != said_.end()) return;
  said_.push_back(line);
  fmt::print(stderr, "assay: {}\n", line);
}

}  // namespace assay::standin
