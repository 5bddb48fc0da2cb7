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
#include "src/base/ptx/fatbin.h"
#include "src/result/verification.h"

namespace assay::standin {
namespace {

using nlohmann::json;

/// CUDA C++ Programming Guide, "Compute Capabilities"; data sheets of A100, L40 and H100 SXM.
constexpr Model kModels[] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB (assay's machine)", 8, 0, 108, size_t{80} << 30, 167936, 166912, 32,
     40 << 20},
    {"sm_89", "NVIDIA L40 (assay's machine)", 8, 9, 142, size_t{48} << 30, 102400, 101376, 24, 96 << 20},
    {"sm_90", "NVIDIA H100 80GB HBM3 (assay's machine)", 9, 0, 132, size_t{80} << 30, 233472, 232448, 32,
     50 << 20},
};

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

const Model& model_of(const std::string& arch) {
  for (const Model& model : kModels)
    if (arch == model.arch) return model;
  throw BadInput(fmt::format("\"{}\" is no architecture of the machine: sm_80, sm_89, sm_90", arch));
}

Device& Device::get() {
  static Device device;
  return device;
}

Device::Device()
    : options_(options_from_environment()),
      model_(model_of(options_.value("arch", "sm_90"))),
      result_(options_.value("result", "")) {
  options_["arch"] = model_.arch;
}

Device::~Device() {
  for (const auto& [address, allocation] : allocations_) note_digest(address, allocation);
  write_result();
}

/// FNV-1a of 64 bits, as tools/gpu_digests.c has it.
void Device::note_digest(uint64_t address, const Allocation& allocation) {
  if (!options_.contains("digests")) return;
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < allocation.bytes; ++i)
    hash = (hash ^ reinterpret_cast<const unsigned char*>(address)[i]) * 0x100000001b3;
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
                       {"lane_instructions", lane_instructions_},
                       {"seconds", seconds_}};
  std::ofstream(result_) << result.dump();
}

Status Device::allocate(size_t bytes, Place place, void** to) {
  if (!to) return fail(kInvalidValue);
  if (bytes == 0) return *to = nullptr, kSuccess;
  const std::lock_guard lock(mutex_);
  void* const made = std::aligned_alloc(512, aligned(bytes));
  if (!made) return last_ = kMemoryAllocation;
  std::memset(made, 0xff, aligned(bytes));  // a NaN in every format: what is read before it is written shows
  Allocation& allocation = allocations_[reinterpret_cast<uint64_t>(made)];
  ++allocated_;
  allocation = {bytes, place, allocated_, fmt::format("allocation {}", allocated_)};
  *to = made;
  return kSuccess;
}

Status Device::free(void* address) {
  if (!address) return kSuccess;
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<uint64_t>(address));
  if (found == allocations_.end()) return last_ = kInvalidValue;
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

LoadedCode* Device::load(const FatBinaryWrapper& wrapper) {
  auto code = std::make_unique<LoadedCode>();
  const auto* const header = static_cast<const FatBinaryHeader*>(wrapper.data);
  try {
    if (wrapper.magic != kWrapperMagic || !header || header->magic != kFatBinaryMagic)
      throw BadInput("a fat binary of another kind than the CUDA runtime's");
    const std::string_view bytes(reinterpret_cast<const char*>(header),
                                 header->header_bytes + header->body_bytes);
    std::vector<ptx::EmbeddedText> texts = ptx::embedded_texts(bytes, "fat binary");
    int best = 0;
    for (ptx::EmbeddedText& text : texts) {
      auto module = binding::load_module(std::move(text.text), text.path);
      const int target = number_of(module->parsed->target);
      if (target > number_of(model_.arch) || target < best) continue;
      if (target > best) code->modules.clear();
      best = target;
      code->modules.push_back(std::move(module));
    }
    if (code->modules.empty()) code->refused = fmt::format("no PTX in it is for {} or less", model_.arch);
  } catch (const std::exception& error) {
    code->refused = error.what();
  }
  const std::lock_guard lock(mutex_);
  codes_.push_back(std::move(code));
  return codes_.back().get();
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
  assay_launch launch{};
  launch.struct_bytes = sizeof launch, launch.entry = kernel.entry.c_str();
  const auto put = [](uint32_t(&to)[3], const Dim3& from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  put(launch.grid, request.grid), put(launch.block, request.block), put(launch.cluster, request.cluster);
  launch.shared_bytes = static_cast<uint32_t>(request.shared_bytes), launch.cooperative = request.cooperative;
  launch.arguments = arguments, launch.argument_count = count;
  std::byte none{};
  if (count == 0) launch.packed = &none, launch.packed_bytes = 0;
  launch.storages = storages.data(), launch.storage_count = storages.size();
  launch.options = text.c_str();
  try {
    const json answer = binding::launch(*module, launch);
    for (const json& line : answer.at("printed")) std::fputs(line.get<std::string>().c_str(), stdout);
    lane_instructions_ += answer.at("lane_instructions").get<uint64_t>();
    seconds_ += answer.at("seconds").get<double>();
    const json& trap = answer.at("trap");
    const json& verification = answer.at("verification");
    if (verification.is_object()) {
      if (verification_from_json(verification).verdict != Verdict::pass) findings_.push_back(verification);
    } else if (trap.is_object()) {
      findings_.push_back(to_json(trapped(options["name"], model_.arch, trap)));
    }
    for (const json& variable : answer.at("changed_variables"))
      note(fmt::format(
          "{} writes {}, a variable of device code: it is not kept for the next launch, as on a GPU",
          kernel.entry, variable.get<std::string>()));
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
