// What a trace keeps beside the memory of a run: a cell for each granule of registers, local, shared and
// global memory. Written once for all traces, which differ in what a cell is: where a value came from, its
// error, whether it was written, who touched it last.
//
// Cells are CellArray<T>, or a type of several arrays with the same members (ErrorCells).
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "src/base/vm/warp.h"

namespace assay::vm {

struct FreeMemory {
  size_t mapped = 0;  ///< bytes of pages of its own; 0: from the heap
  void operator()(void* p) const {
    if (mapped > 0)
      munmap(p, mapped);
    else
      std::free(p);
  }
};
/// From the heap zeros may be memory that was used before, which is cleared at once.
constexpr size_t kOwnPages = size_t{1} << 18;
/// Zeros on pages that cost nothing until they are written.
template <class T>
std::unique_ptr<T[], FreeMemory> lazy_zeros(size_t count) {
  if (const size_t bytes = count * sizeof(T); bytes >= kOwnPages) {
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return std::unique_ptr<T[], FreeMemory>(static_cast<T*>(pages), {bytes});
  }
  void* p = std::calloc(std::max<size_t>(count, 1), sizeof(T));
  if (!p) throw std::bad_alloc();
  return std::unique_ptr<T[], FreeMemory>(static_cast<T*>(p));
}

/// A bit per lane beside every register of a block's warps; of a register whose halves differ one of each.
class RegisterLanes {
 public:
  void begin(size_t warps, const Code& code) {
    warps_.resize(warps);
    for (std::vector<uint32_t>& lanes : warps_) lanes.assign(code.file_bytes / 64 + 4, 0);
  }
  uint32_t& operator()(uint32_t warp, Slot slot, int half = 0) {
    return warps_[warp][slot / 64 + static_cast<size_t>(half)];
  }
  uint32_t& operator()(const Warp& warp, Slot slot) { return (*this)(warp.index, slot); }

 private:
  std::vector<std::vector<uint32_t>> warps_;
};

template <class T>
class CellArray {
 public:
  using Cell = T;
  void reset(size_t count, const T& blank) { all_.assign(count, blank); }
  void fill(size_t first, size_t count, const T& cell) {
    std::fill_n(all_.begin() + static_cast<ptrdiff_t>(first), count, cell);
  }
  void copy(size_t to, const CellArray& other, size_t from) { all_[to] = other.all_[from]; }
  T& operator[](size_t i) { return all_[i]; }
  const T& operator[](size_t i) const { return all_[i]; }
  size_t size() const { return all_.size(); }

 private:
  std::vector<T> all_;
};

/// Where a cell lies; without cells: memory of which nothing is kept.
template <class Cells>
struct CellPlace {
  Cells* cells = nullptr;
  size_t at = 0;
};

/// Of the block that runs: registers and local memory by warp, shared memory. Each part has cells once it is
/// begun.
template <class Cells, uint32_t granule>
class BlockCells {
 public:
  using Cell = typename Cells::Cell;

  /// Registers start as `unwritten`; immediates and special registers as `constant`.
  void begin_registers(const Block& block, const Cell& unwritten, const Cell& constant = {}) {
    begin_registers(block.warps.size(), *block.context->code, unwritten, constant);
  }
  void begin_local(const Block& block, const Cell& unwritten) {
    begin_local(block.warps.size(), *block.context->code, unwritten);
  }
  void begin_shared(const Block& block, const Cell& unwritten) {
    shared_.reset(block.shared.size() / granule + 1, unwritten);
  }
  /// All parts.
  void begin(const Block& block, const Cell& unwritten, const Cell& constant = {}) {
    begin_registers(block, unwritten, constant);
    begin_local(block, unwritten);
    begin_shared(block, unwritten);
  }
  /// All parts, constants too.
  void begin_alike(const Block& block, const Cell& blank) {
    const Code& code = *block.context->code;
    begin_warps(block.warps.size());
    for (size_t w = 0; w < count_; ++w)
      warps_[w].registers.reset(code.file_bytes / granule + 256 / granule, blank);
    begin_local(block, blank);
    begin_shared(block, blank);
  }
  /// Of a block that is known from a log; constants too are `blank`.
  void begin(size_t warps, const Code& code, uint64_t shared_bytes, const Cell& blank) {
    begin_registers(warps, code, blank, blank);
    begin_local(warps, code, blank);
    shared_.reset(shared_bytes / granule + 1, blank);
  }

  Cells& registers(const Warp& warp) { return warps_[warp.index].registers; }
  Cells& registers(uint32_t warp) { return warps_[warp].registers; }
  Cells& shared() { return shared_; }
  /// Granule `part` of a register in a lane: the lanes of one part lie side by side.
  static size_t cell(Slot slot, int part, int lane) {
    return slot / granule + static_cast<size_t>(part) * 32 + static_cast<size_t>(lane);
  }
  /// Of shared or local memory.
  CellPlace<Cells> place(uint32_t warp, int lane, ptx::Space space, uint64_t address) {
    if (space == ptx::Space::shared) return {&shared_, address / granule};
    return {&warps_[warp].local, (static_cast<size_t>(lane) * local_bytes_ + address) / granule};
  }
  template <class Visit>
  void each_array(Visit visit) {
    for (size_t w = 0; w < count_; ++w) visit(warps_[w].registers), visit(warps_[w].local);
    visit(shared_);
  }
  /// Those of earlier blocks too, which stay for later ones.
  template <class Visit>
  void each_kept_array(Visit visit) const {
    for (const OfWarp& warp : warps_) visit(warp.registers), visit(warp.local);
    visit(shared_);
  }

 private:
  void begin_registers(size_t warps, const Code& code, const Cell& unwritten, const Cell& constant) {
    begin_warps(warps);
    for (size_t w = 0; w < warps; ++w) {
      warps_[w].registers.reset(code.file_bytes / granule + 256 / granule, constant);
      warps_[w].registers.fill(0, code.register_bytes / granule, unwritten);
    }
  }
  void begin_local(size_t warps, const Code& code, const Cell& unwritten) {
    local_bytes_ = code.local_bytes;
    begin_warps(warps);
    for (size_t w = 0; w < warps; ++w)
      warps_[w].local.reset(size_t{local_bytes_} * 32 / granule + 1, unwritten);
  }
  void begin_warps(size_t warps) {
    count_ = warps;
    if (warps_.size() < warps) warps_.resize(warps);
  }

  struct OfWarp {
    Cells registers, local;
  };
  std::vector<OfWarp> warps_;
  size_t count_ = 0;  ///< of them the block that runs has
  Cells shared_;
  uint32_t local_bytes_ = 0;
};

/// Of global memory: an area per allocation that is followed, its cells in pages made on first touch. Several
/// threads may touch one area.
struct NoNote {};
template <class Cells, class Note = NoNote>
class GlobalCells {
 public:
  using Cell = typename Cells::Cell;
  static constexpr uint64_t page_cells = 1 << 12;

  struct Area {
    std::string name;
    uint64_t base = 0, bytes = 0;
    uint32_t granule = 1;
    Cell blank{};  ///< of what nothing has touched
    Note note{};   ///< what a trace knows of the allocation
    std::unique_ptr<std::atomic<Cells*>[], FreeMemory> pages {};
  };

  Area& add(std::string name, uint64_t base, uint64_t bytes, uint32_t granule, const Cell& blank,
            Note note = {}) {
    const auto at = std::upper_bound(areas_.begin(), areas_.end(), base,
                                     [](uint64_t value, const Area& a) { return value < a.base; });
    Area made{std::move(name), base, bytes, granule, blank, std::move(note)};
    made.pages = lazy_zeros<std::atomic<Cells*>>(bytes / granule / page_cells + 1);
    return *areas_.insert(at, std::move(made));
  }
  /// Null: nothing is kept of this address. `hint`: the caller's last answer, as an index.
  Area* find(uint64_t address, size_t& hint) {
    const auto holds = [&](const Area& a) { return address - a.base < a.bytes; };
    if (hint < areas_.size() && holds(areas_[hint])) return &areas_[hint];
    const auto after = std::upper_bound(areas_.begin(), areas_.end(), address,
                                        [](uint64_t value, const Area& a) { return value < a.base; });
    if (after == areas_.begin() || !holds(*(after - 1))) return nullptr;
    hint = static_cast<size_t>(after - areas_.begin()) - 1;
    return &areas_[hint];
  }
  const Area* find(const std::string& name) const {
    const auto at = std::find_if(areas_.begin(), areas_.end(), [&](const Area& a) { return a.name == name; });
    return at == areas_.end() ? nullptr : &*at;
  }
  /// The cell of the byte at `offset`; those of one aligned access lie side by side.
  CellPlace<Cells> touch(Area& area, uint64_t offset) {
    const uint64_t number = offset / area.granule;
    std::atomic<Cells*>& page = area.pages[number / page_cells];
    Cells* cells = page.load(std::memory_order_acquire);
    if (!cells) cells = make_page(page, area.blank);
    return {cells, number % page_cells};
  }
  /// The cells of `bytes` bytes from `offset` on become `cell`.
  void fill(Area& area, uint64_t offset, uint64_t bytes, const Cell& cell) {
    for (uint64_t at = offset, end = offset + bytes; at < end;) {
      const auto [cells, first] = touch(area, at);
      const uint64_t count = std::min((end - at) / area.granule, page_cells - first);
      cells->fill(first, count, cell);
      at += count * area.granule;
    }
  }
  CellPlace<Cells> place(uint64_t address, size_t& hint) {
    Area* const area = find(address, hint);
    return area ? touch(*area, address - area->base) : CellPlace<Cells>{};
  }
  /// What lies in one page with `address`. Of what is not followed: its byte alone, without cells; for
  /// reading also where nothing has touched the page.
  struct Page {
    Cells* cells = nullptr;
    uint64_t first = 0, bytes = 1;
  };
  Page page(uint64_t address, bool to_write, size_t& hint) {
    Area* const area = find(address, hint);
    if (!area) return {nullptr, address, 1};
    const uint64_t offset = address - area->base, size = page_cells * area->granule,
                   first = offset / size * size;
    return {(to_write ? touch(*area, offset) : seen(*area, offset)).cells, area->base + first,
            std::min(size, area->bytes - first)};
  }
  static CellPlace<Cells> seen(const Area& area, uint64_t offset) {
    const uint64_t number = offset / area.granule;
    return {area.pages[number / page_cells].load(std::memory_order_acquire), number % page_cells};
  }
  std::vector<Area>& areas() { return areas_; }
  const std::vector<Area>& areas() const { return areas_; }

  GlobalCells() = default;
  GlobalCells(const GlobalCells&) = delete;
  GlobalCells& operator=(const GlobalCells&) = delete;
  /// Cells that are large leave their pages to the thread's next ones.
  ~GlobalCells() {
    if constexpr (requires(const Cells& cells) { cells.bytes(); })
      for (std::unique_ptr<Cells>& cells : made_) {
        if (left_.size() * cells->bytes() >= kMostLeft) break;
        left_.push_back(std::move(cells));
      }
  }

 private:
  static constexpr size_t kMostLeft = size_t{1} << 25;
  std::unique_ptr<Cells> make_cells() {
    if (left_.empty()) return std::make_unique<Cells>();
    std::unique_ptr<Cells> taken = std::move(left_.back());
    left_.pop_back();
    return taken;
  }
  Cells* make_page(std::atomic<Cells*>& page, const Cell& blank) {
    const std::lock_guard lock(mutex_);
    if (Cells* made = page.load(std::memory_order_relaxed)) return made;
    made_.push_back(make_cells());
    made_.back()->reset(page_cells, blank);
    page.store(made_.back().get(), std::memory_order_release);
    return made_.back().get();
  }

  std::vector<Area> areas_;  ///< ascending base
  std::mutex mutex_;
  std::vector<std::unique_ptr<Cells>> made_;
  static inline thread_local std::vector<std::unique_ptr<Cells>> left_;
};

}  // namespace assay::vm
