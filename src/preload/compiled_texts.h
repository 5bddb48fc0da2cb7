// Machine code of PTX texts, kept in a folder from one start of a program to the next: compiling a watched
// module takes seconds to a minute.
//
// HASH.ptx there is the text, HASH.sm_90.cubin what the driver's compiler made of it, or, where it cannot
// be asked (before there is a context), what anybody does: ptxas -arch=sm_90 HASH.ptx -o HASH.sm_90.cubin.
#pragma once
#include <filesystem>
#include <string>

namespace assay::preload {

class CompiledTexts {
 public:
  /// Nothing is kept where the folder has no name.
  explicit CompiledTexts(std::filesystem::path folder) : folder_(std::move(folder)) {}
  bool keeps() const { return !folder_.empty(); }

  /// What is kept of a text for GPUs of that compute capability (90); empty where nothing is, and then its
  /// text is there.
  std::string kept(const std::string& text, int capability) const;
  /// What is kept, else what the driver's compiler makes of it for the current context, which is kept from
  /// then on. Empty where there is none, or where it refuses the text.
  std::string compiled(const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace assay::preload
