#include "src/base/vm/held_entries.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/parse_entry.h"
#include "src/base/vm/launch.h"

namespace assay::vm {
namespace {

constexpr uint64_t kMostHeld = uint64_t{1} << 30;

constexpr uint64_t kOfAllocation = 16;  // glibc's, for each

template <class T>
uint64_t of(const std::vector<T>& v) {
  return v.capacity() ? v.capacity() * sizeof(T) + kOfAllocation : 0;
}

uint64_t of(const std::string& s) {
  return s.capacity() > 15 ? s.capacity() + 1 + kOfAllocation : 0;  // shorter ones lie in themselves
}

uint64_t inside(const ptx::Operand& operand) {
  uint64_t bytes = of(operand.name) + of(operand.elements);
  for (const ptx::Operand& element : operand.elements) bytes += inside(element);
  return bytes;
}

uint64_t inside(const ptx::Function& function) {
  uint64_t bytes = of(function.registers) + of(function.body) + of(function.labels);
  for (const ptx::Register& r : function.registers) bytes += of(r.name);
  for (const ptx::Instruction& instruction : function.body) {
    bytes += of(instruction.opcode) + of(instruction.operands);
    for (const ptx::Operand& operand : instruction.operands) bytes += inside(operand);
  }
  return bytes;
}

/// A text and what parsing its entries has found.
struct KnownText {
  std::shared_ptr<const std::string> text;
  ptx::PassedBodies passed;
};

/// One entry of a module, decoded by the first thread that asks for it; others wait for that entry alone.
struct Cached {
  std::shared_ptr<const std::string> text;
  std::shared_ptr<KnownText> known_text;
  std::string path, entry;
  std::map<std::string, uint64_t> places;
  std::mutex mutex;
  std::shared_ptr<const Code> code;
  uint64_t bytes = 0;  ///< once it is decoded; Cache::mutex guards it
};

/// Entries by the whole text of their modules, the most recently used first, as many as fit.
struct Cache {
  using Entries = std::list<std::shared_ptr<Cached>>;
  std::mutex mutex;
  Entries entries;
  std::unordered_multimap<std::string, Entries::iterator> by_name;         ///< the entry's
  std::unordered_map<const std::string*, std::weak_ptr<KnownText>> texts;  ///< of the entries that are held
  uint64_t bytes = 0, most = kMostHeld;

  /// A text that is known is held by what knows it, so that no other lies in its place.
  std::shared_ptr<KnownText> known_text(const std::shared_ptr<const std::string>& text) {
    std::weak_ptr<KnownText>& known = texts[text.get()];
    std::shared_ptr<KnownText> found = known.lock();
    if (!found) known = found = std::make_shared<KnownText>(text);
    return found;
  }
  Entries::iterator find(const Module& source, const std::string& entry) {
    const auto [first, last] = by_name.equal_range(entry);
    const auto is = [&](const auto& named) {
      const Cached& c = **named.second;
      return (c.text == source.ptx || *c.text == *source.ptx) && c.path == source.path &&
             c.places == source.places;
    };
    const auto found = std::find_if(first, last, is);
    return found == last ? entries.end() : found->second;
  }
  void drop_last() {
    const auto [first, last] = by_name.equal_range(entries.back()->entry);
    const auto is_last = [&](const auto& named) { return *named.second == entries.back(); };
    by_name.erase(std::find_if(first, last, is_last));
    bytes -= entries.back()->bytes;
    entries.pop_back();
  }
};

/// Never taken apart: a process that ends need not free what it decoded.
Cache& cache() {
  static Cache& made = *new Cache;
  return made;
}

std::shared_ptr<Cached> cached(const Module& source, const std::string& entry) {
  Cache& known = cache();
  const std::lock_guard lock(known.mutex);
  const auto found = known.find(source, entry);
  if (found != known.entries.end()) {
    known.entries.splice(known.entries.begin(), known.entries, found);
  } else {
    auto made = std::make_shared<Cached>();
    made->text = source.ptx, made->known_text = known.known_text(source.ptx), made->path = source.path,
    made->entry = entry, made->places = source.places;
    known.entries.push_front(std::move(made));
    known.by_name.emplace(entry, known.entries.begin());
  }
  return known.entries.front();
}

/// It is decoded and takes so much: what was not used for longest goes, where all is too much. Runs that have
/// it keep theirs.
void hold(const std::shared_ptr<Cached>& made, uint64_t bytes) {
  Cache& known = cache();
  const std::lock_guard lock(known.mutex);
  const auto at = std::find(known.entries.begin(), known.entries.end(), made);
  if (at == known.entries.end()) return;
  made->bytes = bytes, known.bytes += bytes;
  while (known.bytes > known.most && known.entries.back() != made) known.drop_last();
}

}  // namespace

uint64_t held_bytes(const Code& code) {
  const ptx::Module& module = *code.module;
  uint64_t bytes = of(module.lines) + of(module.variables) + of(module.functions);
  for (const ptx::Variable& variable : module.variables) bytes += of(variable.initial);
  for (const ptx::Function& function : module.functions) bytes += inside(function);
  bytes += of(code.ops) + of(code.signatures) + of(code.uses) + of(code.accesses) + of(code.slot_pool);
  for (const Op& op : code.ops) bytes += op.slot_count ? op.slot_count * sizeof(Slot) + kOfAllocation : 0;
  return bytes + of(code.immediates) + of(code.specials) + of(code.registers);
}

std::shared_ptr<const Code> decoded(const Module& source, const std::string& entry) {
  if (!source.ptx) throw BadInput(source.path + ": the module has no PTX text");
  const std::shared_ptr<Cached> kept = cached(source, entry);
  const std::lock_guard lock(kept->mutex);
  if (!kept->code) {
    const auto module = std::make_shared<const ptx::Module>(
        ptx::parse_entry(*kept->text, source.path, entry, &kept->known_text->passed));
    kept->code = decode(module, entry, source.places);
    hold(kept, held_bytes(*kept->code));
  }
  return kept->code;
}

uint64_t hold_at_most(uint64_t bytes) {
  Cache& known = cache();
  const std::lock_guard lock(known.mutex);
  return std::exchange(known.most, bytes);
}

uint64_t bytes_held() {
  Cache& known = cache();
  const std::lock_guard lock(known.mutex);
  return known.bytes;
}

}  // namespace assay::vm
