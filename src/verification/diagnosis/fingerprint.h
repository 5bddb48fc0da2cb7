// Dependency fingerprints: which input elements an output element depends on and should depend on, and with
// which derivative, by moving the inputs of the program in exact arithmetic and of the reference alike. Both
// are the same function of real numbers where the formula is right, so that any difference names what is
// wrong in the words of the axes, without a hypothesis.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/tensor/tensor.h"
#include "src/base/vm/moved_run.h"

namespace assay {

/// The outputs after a move of the inputs; none where there are none.
using MovableFunction = std::function<std::optional<vm::RealOutputs>(const vm::InputMoves&)>;

/// Element `from` of an input was moved: what that changes of every element of an output, per unit moved.
struct DependenceColumn {
  int64_t from = 0;
  std::vector<double> program, reference;
};

/// One output's dependence on one input, for the elements of the input that were moved. Tensors without data.
struct Dependence {
  Tensor output, input;
  std::vector<DependenceColumn> columns;
};

/// Outputs depend on other elements of an input than they should, and these lie along one axis.
struct Misread {
  std::string input, axis;
};

struct FingerprintText {
  std::vector<std::string> sentences;  ///< "o[t >= 64] does not depend on initial_state[h = 1]"
  bool plain = false;                  ///< the first says how derivatives differ, not only that they do
  std::vector<Misread> misread;        ///< inputs of which others are read rightly along such an axis
  std::vector<std::string> dropped;    ///< inputs of which one token alone takes no part
  std::vector<std::string> later;      ///< inputs of whose tokens later ones take part and should not
};
/// One sentence for each way in which dependences differ, the plainest first.
FingerprintText sentences_of(const std::vector<Dependence>&, const TensorMap& inputs);

struct Fingerprint : FingerprintText {
  int64_t moved = 0, elements = 0;  ///< of the inputs' elements those that were looked at, and all
};

/// Elements are moved together, and those of a set that shows a difference apart, for at most so many
/// seconds. `outputs`: names and axes of those that are looked at. Inputs of integers are left out.
Fingerprint fingerprint(const TensorMap& inputs, const std::vector<Tensor>& outputs,
                        const MovableFunction& program, const MovableFunction& reference, double seconds);

}  // namespace assay
