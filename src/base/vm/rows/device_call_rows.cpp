// Calls that the system answers (CUDA C++ Programming Guide, "Formatted Output", "Dynamic Global Memory
// Allocation and Operations"). Op::slots: the arguments' places in local memory; a result takes the first
// one's, from where an op of its own copies it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "src/base/vm/decoder.h"
#include "src/base/vm/device_calls.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

uint64_t DeviceCalls::allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex);
  if (bytes > DeviceHeap::size) return 0;
  const auto taken = [](uint64_t size) { return (std::max<uint64_t>(size, 1) + 15) / 16 * 16 + 16; };
  const uint64_t wanted = taken(bytes);
  uint64_t at = heap.next;
  if (at > DeviceHeap::size - wanted) {
    at = 0;
    for (const auto& [offset, size] : heap.objects) {  // the first gap that holds it
      if (offset - at >= wanted) break;
      at = offset + taken(size);
    }
    if (at > DeviceHeap::size - wanted) return 0;
    std::erase_if(heap.freed, [&](const auto& old) {
      return old.first < at + wanted && at < old.first + taken(old.second);
    });
    std::fill_n(heap.written.begin() + static_cast<std::ptrdiff_t>(at), wanted, uint8_t{0});
  } else {
    heap.next = at + wanted;
  }
  heap.objects.emplace(at, bytes);
  return heap_base + at;
}

bool DeviceCalls::release(uint64_t address) {
  const std::lock_guard lock(mutex);
  if (address == 0) return true;
  const auto found = heap.objects.find(address - heap_base);
  if (found == heap.objects.end()) return false;
  heap.freed.insert(*found);
  heap.objects.erase(found);
  return true;
}

namespace {

/// The last object that begins at or before the offset; end() where there is none.
auto object_before(const std::map<uint64_t, uint64_t>& objects, uint64_t offset) {
  auto after = objects.upper_bound(offset);
  return after == objects.begin() ? objects.end() : --after;
}

}  // namespace

namespace {

thread_local HeapOfProcess* heap_of_process = nullptr;

}  // namespace

HeapOfProcess::HeapOfProcess(std::shared_ptr<const DeviceHeap> before)
    : before_(std::move(before)), outer_(std::exchange(heap_of_process, this)) {}

HeapOfProcess::~HeapOfProcess() {
  heap_of_process = outer_;
}

HeapOfProcess* HeapOfProcess::current() {
  return heap_of_process;
}

void HeapOfProcess::leave(DeviceHeap&& heap) {
  if (!after_) after_ = std::make_shared<const DeviceHeap>(std::move(heap));
}

bool DeviceCalls::reaches_object(uint64_t offset, uint64_t bytes, bool writes) {
  const std::lock_guard lock(mutex);
  const auto object = object_before(heap.objects, offset);
  if (object == heap.objects.end() || offset + bytes > object->first + object->second) return false;
  if (writes) std::fill_n(heap.written.begin() + static_cast<std::ptrdiff_t>(offset), bytes, uint8_t{1});
  return true;
}

std::string DeviceCalls::describe(uint64_t offset) {
  const std::lock_guard lock(mutex);
  const auto object = object_before(heap.objects, offset), old = object_before(heap.freed, offset);
  const bool lives = object != heap.objects.end();
  if (lives && offset < object->first + object->second)
    return fmt::format("byte {} of an object of {} bytes of the device's heap", offset - object->first,
                       object->second);
  if (old != heap.freed.end() && offset < old->first + old->second)
    return fmt::format("byte {} of an object of {} bytes of the device's heap that was freed",
                       offset - old->first, old->second);
  if (lives)
    return fmt::format("{} bytes past the end of an object of {} bytes of the device's heap",
                       offset - object->first - object->second, object->second);
  return fmt::format("byte {} of the device's heap, where no object is", offset);
}

namespace {

constexpr size_t longest_text = 1024;

class Arguments {
 public:
  Arguments(Warp& warp, const Op& op, int lane) : warp_(warp), op_(op), lane_(lane) {}

  std::byte* place(int argument) const { return local() + op_.slots[argument]; }
  template <class T = uint64_t>
  T get(int argument) const {
    T value;
    std::memcpy(&value, place(argument), sizeof value);
    return value;
  }
  template <class T>
  void give(T result) const {
    std::memcpy(place(0), &result, sizeof result);
  }
  /// Of a generic address; null where nothing is held. `left`: so many bytes follow.
  const std::byte* at(uint64_t address, uint64_t* left) const {
    const Code& code = *warp_.block->context->code;
    if (address - local_window < code.local_bytes) {
      *left = code.local_bytes - (address - local_window);
      return local() + (address - local_window);
    }
    const Memory& memory = *warp_.block->context->memory;
    const int found = memory.find(address, 1);
    if (found < 0 || !memory.allocations()[static_cast<size_t>(found)].data) return nullptr;
    const Allocation& from = memory.allocations()[static_cast<size_t>(found)];
    *left = from.bytes - (address - from.base);
    return from.data + (address - from.base);
  }
  std::string text(uint64_t address, size_t most) const {
    uint64_t left = 0;
    const auto* begin = reinterpret_cast<const char*>(at(address, &left));
    return begin ? std::string(begin, strnlen(begin, std::min<uint64_t>(left, most))) : "";
  }

 private:
  std::byte* local() const {
    return warp_.local.data() + static_cast<uint64_t>(lane_) * warp_.block->context->code->local_bytes;
  }
  Warp& warp_;
  const Op& op_;
  const int lane_;
};

/// The values behind a printf's format, each aligned to its size.
class Values {
 public:
  Values(const Arguments& arguments, uint64_t address) : arguments_(arguments), address_(address) {}
  template <class T>
  T next() {
    address_ = (address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    uint64_t left = 0;
    const std::byte* const at = arguments_.at(address_, &left);
    T value{};
    if (at && left >= sizeof value) std::memcpy(&value, at, sizeof value);
    address_ += sizeof value;
    return value;
  }

 private:
  const Arguments& arguments_;
  uint64_t address_;
};

/// Flags and numbers, as the C library takes them; widths of more than three digits are cut.
std::string number_of(std::string_view format, size_t& i, Values& values) {
  std::string digits;
  if (i < format.size() && format[i] == '*') {
    ++i;
    return std::to_string(std::clamp(values.next<int32_t>(), -999, 999));
  }
  for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i)
    if (digits.size() < 3) digits += format[i];
  return digits;
}

/// One conversion from `i`, just behind its '%'.
std::string converted(std::string_view format, size_t& i, Values& values, const Arguments& arguments) {
  const size_t begin = i;
  std::string spec = "%";
  while (i < format.size() && std::string_view("-+ #0").find(format[i]) != std::string_view::npos)
    spec += format[i++];
  spec += number_of(format, i, values);
  if (i < format.size() && format[i] == '.') spec += '.', ++i, spec += number_of(format, i, values);
  bool is_long = false;
  for (; i < format.size() && std::string_view("hlLqjzt").find(format[i]) != std::string_view::npos; ++i)
    is_long |= format[i] != 'h' && format[i] != 'L';
  const char kind = i < format.size() ? format[i++] : '\0';
  char out[longest_text] = "";
  if (std::string_view("diouxX").find(kind) != std::string_view::npos && kind) {
    const bool is_signed = kind == 'd' || kind == 'i';
    const long long value = is_long     ? values.next<int64_t>()
                            : is_signed ? values.next<int32_t>()
                                        : static_cast<long long>(values.next<uint32_t>());
    std::snprintf(out, sizeof out, (spec + "ll" + kind).c_str(), value);
  } else if (std::string_view("eEfFgGaA").find(kind) != std::string_view::npos && kind) {
    std::snprintf(out, sizeof out, (spec + kind).c_str(), values.next<double>());
  } else if (kind == 'c') {
    std::snprintf(out, sizeof out, (spec + kind).c_str(), values.next<int32_t>());
  } else if (kind == 'p') {
    return fmt::format("{:#x}", values.next<uint64_t>());
  } else if (kind == 's') {
    std::snprintf(out, sizeof out, (spec + kind).c_str(),
                  arguments.text(values.next<uint64_t>(), longest_text - 1).c_str());
  } else if (kind == '%') {
    return "%";
  } else {
    return "%" + std::string(format.substr(begin, i - begin));
  }
  return out;
}

std::string formatted(std::string_view format, Values values, const Arguments& arguments) {
  std::string text;
  for (size_t i = 0; i < format.size() && text.size() < longest_text;) {
    if (format[i] != '%')
      text += format[i++];
    else
      text += converted(format, ++i, values, arguments);
  }
  return text.substr(0, longest_text);
}

bool print(Warp& warp, const Op& op, uint32_t mask) {
  DeviceCalls& calls = *warp.block->context->calls;
  each_lane(mask, [&](int lane) {
    const Arguments arguments(warp, op, lane);
    const std::string format = arguments.text(arguments.get(0), longest_text);
    const std::lock_guard lock(calls.mutex);
    if (calls.printed.size() < DeviceCalls::most_lines) {
      std::string text = formatted(format, Values(arguments, arguments.get(1)), arguments);
      while (text.ends_with('\n')) text.pop_back();
      const ThreadPlace at = place_of(warp, lane);
      calls.printed.push_back(fmt::format("block ({},{},{}), thread ({},{},{}): {}", at.block[0], at.block[1],
                                          at.block[2], at.thread[0], at.thread[1], at.thread[2], text));
    } else {
      ++calls.not_printed;
    }
    int32_t conversions = 0;  // what printf returns on a device
    for (size_t i = 0; (i = format.find('%', i)) != format.npos; i += 2) conversions += format[i + 1] != '%';
    arguments.give(conversions);
  });
  return true;
}

bool allocate(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    const Arguments arguments(warp, op, lane);
    arguments.give(warp.block->context->calls->allocate(arguments.get(0)));
  });
  return true;
}

bool release(Warp& warp, const Op& op, uint32_t mask) {
  bool good = true;
  each_lane(mask, [&](int lane) {
    const uint64_t address = Arguments(warp, op, lane).get(0);
    if (good && !warp.block->context->calls->release(address))
      good = raise(warp, op, lane, TrapKind::out_of_bounds,
                   fmt::format("free of {:#x}, where no object of the device's heap begins: {}", address,
                               warp.block->context->memory->describe(address)));
  });
  return good;
}

void decode_nothing_more(Decoder&, const ptx::Instruction&, Op&) {}

}  // namespace

void add_device_call_rows(std::vector<Row>& rows) {
  add_warp_row(rows, "call vprintf", {}, print, decode_nothing_more);
  add_warp_row(rows, "call malloc", {}, allocate, decode_nothing_more);
  add_warp_row(rows, "call free", {}, release, decode_nothing_more);
}

}  // namespace assay::vm
