// Where a launch file and what it names lie: in a folder, or in a capsule, a ZIP archive that holds them all.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/tensor/mapped_file.h"
#include "src/base/tensor/tensor.h"
#include "src/base/tensor/zip.h"

namespace assay {

class LaunchFolder {
 public:
  /// A launch file; a folder that has a launch.json; or a capsule (any name, told by its first bytes). Names
  /// in the latter two stay inside; a launch file's own may lead anywhere. Throws BadInput.
  explicit LaunchFolder(const std::string& path);

  /// Of the launch file itself, for messages: "scan.json", "scan.capsule/launch.json".
  const std::string& document_path() const { return document_path_; }
  std::string document() const;
  /// "folder/x.npy": where a named file lies, for messages.
  std::string path_of(const std::string& name) const;
  /// Its bytes. Throws BadInput where there is none, or where a name leaves the folder.
  std::string read(const std::string& name) const;
  /// The same where it lies; not of a capsule's.
  std::shared_ptr<const MappedFile> map(const std::string& name) const;
  /// Of a .npy file, without a name; `large_stay` as of read_tensors.
  Tensor read_npy(const std::string& name, bool large_stay) const;
  /// Of a .safetensors or .npz file; beside a launch file also of a folder of .npy files. `large_stay`:
  /// tensors of more than kLargestHeld bytes stay in a .safetensors file (stored, where that is in a
  /// capsule).
  TensorMap read_tensors(const std::string& name, bool large_stay = false) const;

 private:
  void require_inside(const std::string& name) const;

  std::string path_, document_path_, folder_;
  bool closed_ = false;                            ///< names stay inside
  std::optional<ZipFiles> files_;                  ///< of a capsule
  std::map<std::string, std::string_view> large_;  ///< those of a capsule that stay in `mapped_`
  std::shared_ptr<const MappedFile> mapped_;       ///< the capsule
};

/// The launch file's name inside a capsule.
inline constexpr const char* kLaunchDocument = "launch.json";
/// Of everything in a capsule, unpacked.
inline constexpr uint64_t kLargestCapsule = uint64_t{16} << 30;

/// Whether a name is one of them, there or not: a file, a folder with a launch.json, or a name that ends in
/// .json or .capsule.
bool is_launch_file(const std::string& name);

}  // namespace assay
