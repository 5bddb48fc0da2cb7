// The features of a case and the classes that their values fall into, one row each: what the covering draw
// pairs, and what a run's pairs of features are counted of.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/dimensions.h"

namespace assay {

/// A range of sizes within which kernels do alike. The limits that they have are where one class ends and the
/// next begins.
struct SizeClass {
  std::string_view axes;  ///< letters of the axes: "KVM"
  std::string_view name;
  int64_t least = 1;
  int64_t most = 1;  ///< that are drawn; of the last class of an axis larger ones are members too
  int64_t modulus = 1, rest = 0;  ///< members are `rest` above a multiple of `modulus`
  std::string_view why;           ///< what begins here
};
/// All rows of size_classes.def.
const std::vector<SizeClass>& size_classes();
/// The class of a size; null where it has none.
const SizeClass* size_class(char axis, int64_t size);

struct Feature {
  std::string_view name;
  char axis = 0;  ///< of sizes: the letter of size_classes.def
  /// Names of the classes that cases of this kernel may have; not every one need be possible.
  std::vector<std::string> (*classes)(const Kernel&, const Operator&) = nullptr;
  /// Of a case that is drawn; empty where it has none, as a profile outside the domain.
  std::string (*class_of)(const Case&, const Operator&) = nullptr;
  /// Gives the case some value of the class; what the rows before this one gave it is there. In a RapidCheck
  /// generator only. A case that cannot have it stays as it is.
  void (*draw)(Case&, const Target&, const std::string& name) = nullptr;
};

/// All features, each after those that it depends on: sizes before layouts, the direction before what is
/// present.
const std::vector<Feature>& features();

}  // namespace assay
