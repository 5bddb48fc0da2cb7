// Source lines of a slice: which of its instances each of them has.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/verification/diagnosis/element_slopes.h"
#include "src/verification/diagnosis/explained_line.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {

std::string_view operation_of(const vm::ValueSlice&, uint32_t instance);
/// SliceOperand::input of the element that the instance takes; -1: none.
int64_t input_of(const vm::ValueSlice&, uint32_t instance);

/// Halves of words that are moved get the 16-bit format that they are taken in: `of_roots` of the elements,
/// else that of what takes them.
void name_moved_formats(const std::vector<ptx::Type>& of_roots, vm::ValueSlice&);

/// Behind each instance: one bit for each input, the last one for all beyond it.
std::vector<uint64_t> inputs_behind(const vm::ValueSlice&);

class SliceLines {
 public:
  /// Of copies `mere`: not those that are all that is done with what another line made.
  SliceLines(const vm::ValueSlice&, const ElementSlopes&, const SourceText&, bool mere);

  std::vector<ExplainedLine> all;
  std::map<size_t, std::set<size_t>> assigned;  ///< of a line those that merely copy what it makes
  const std::vector<size_t>& of_instance() const { return of_instance_; }  ///< SIZE_MAX: of none
  const std::map<Site, size_t>& of_site() const { return of_site_; }
  /// The instance whose value this one only hands on; -1: none.
  int32_t copied(uint32_t instance) const;

 private:
  /// A source line as reached through its calls that were inlined: one in a function that many call is
  /// several.
  using Place = std::tuple<std::string, int, std::vector<std::string>>;

  bool is_mere(uint32_t instance);
  size_t line_of(const vm::SliceInstance&);

  const vm::ValueSlice& slice_;
  const ElementSlopes& slopes_;
  const SourceText& source_;
  std::map<const ptx::Module*, Locations> locations_;
  std::map<Site, size_t> of_site_;
  std::map<Place, size_t> of_place_;
  std::vector<size_t> of_instance_;
};

}  // namespace assay
