// A file that is written whole or not at all, also where several processes write it.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace assay {

/// Makes the folder too. False: it could not be written, and what was there before still is.
inline bool write_whole(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path apart = path.string() + "." + std::to_string(getpid());
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const bool whole = bool((std::ofstream(apart, std::ios::binary) << text).flush());
  if (whole) std::filesystem::rename(apart, path, failed);
  if (whole && !failed) return true;
  std::filesystem::remove(apart, failed);
  return false;
}

}  // namespace assay
