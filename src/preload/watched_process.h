// The program that is watched, from inside: its PTX with the watch in it, the buffer that its kernels note
// births in, and what is told of them.
//
// The buffer is memory of the host that the device reaches at the same address: nothing is copied, and what
// is noted can be read at any time. It is made known to the device before launches, as far as it is used.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/watch/watched_program.h"
#include "src/preload/compiled_texts.h"

namespace assay::preload {

class WatchedProcess {
 public:
  /// Options from the environment: ASSAY_WATCH, a JSON object {"result": FILE, "kept": N, "blocks": SHARE,
  /// "repeated": N, "compiled": FOLDER}: WatchOptions, and where machine code is kept.
  static WatchedProcess& get();
  ~WatchedProcess();

  /// PTX text as the device is to get it; the text itself where it cannot be watched. `marks_cold`
  /// and `own_registers` are of WatchOptions.
  std::string watched(const std::string& text, const std::string& path, bool marks_cold,
                      int own_registers = 0, const std::map<std::string, int>& registers_of_entries = {});
  /// An image as cuModuleLoadData takes it: PTX text or a fat binary, or machine code of it that was kept;
  /// null: it goes on as it is.
  const void* watched_image(const void* image);
  /// The driver refuses what watched_image gave, with that status, and takes the image as it is: it counts
  /// among what is not watched.
  void refused(const void* watched_image, int status);
  /// Whether the code at that address belongs to a library of NVIDIA's or PyTorch's: compiling all of its
  /// PTX anew would take minutes.
  bool is_left_out(const void* code);

  /// Makes memory known to the device at its own address; 0 where that went well.
  using Register = int (*)(void* memory, size_t bytes, unsigned flags);
  /// Before a launch.
  void launching(Register);
  /// Tells of births that nobody has been told of; after what waits for the device.
  void look();
  /// All births, and what was watched.
  nlohmann::json result();

 private:
  WatchedProcess();
  /// A text in an image: what it added to what is watched.
  struct Given {
    std::shared_ptr<const ptx::Module> module;
    watch::WatchCounts counts;
  };
  std::string watched(const std::string& text, const std::string& path, watch::WatchOptions,
                      std::vector<Given>&);
  void add(const watch::WatchCounts&, int times);
  void tell(const watch::NotedBirth&);
  void write_result();

  nlohmann::json options_;
  watch::WatchOptions watch_;
  CompiledTexts compiled_;
  std::mutex mutex_;
  std::byte* buffer_ = nullptr;
  size_t used_ = 0, registered_ = 0;  ///< bytes
  int32_t sites_ = 0;
  std::vector<watch::WatchedModule> modules_;
  watch::WatchCounts counts_;
  std::vector<std::string> unwatched_;
  std::vector<std::vector<std::byte>> images_;  ///< that the driver was given
  std::vector<std::string> texts_;
  std::map<const void*, std::vector<Given>> given_;  ///< by image that the driver was given
  uint32_t launches_ = 0, told_ = 0;
  std::vector<bool> is_told_;  ///< by record
  std::atomic<int64_t> left_out_ = 0;
};

/// The function of that name in what is loaded behind this library; null where there is none.
void* next_function(const char* name);

}  // namespace assay::preload
