// A program: GPU code and how it is run, as plain data. Both engines, the machine and the GPU, execute it the
// same way; nothing here says what it computes.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/program/argument.h"
#include "src/base/tensor/tensor.h"
#include "src/base/tensor/tensor_layout.h"

namespace assay {

struct Workspace {
  std::string name;
  int64_t bytes = 0;
  std::string copy_of;     ///< input or output whose elements it holds row by row; empty: none
  std::vector<Axis> axes;  ///< those elements' where its rows are others; empty: as there
};
template <typename Io>
void fields(Io& io, Workspace& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(bytes);
  ASSAY_FIELD(copy_of);
  ASSAY_FIELD(axes);
}

struct Launch {
  std::string module;  ///< key of Program::modules
  std::string function;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<Argument> arguments;
  std::array<uint32_t, 3> cluster{};  ///< blocks that are launched together; zeros: as the entry says
  bool cooperative = false;           ///< all blocks run together, and may wait for each other: grid.sync()
};
template <typename Io>
void fields(Io& io, Launch& x) {
  ASSAY_FIELD(module);
  ASSAY_FIELD(function);
  ASSAY_FIELD(grid);
  ASSAY_FIELD(block);
  ASSAY_FIELD(shared_bytes);
  ASSAY_FIELD(arguments);
  ASSAY_FIELD(cluster);
  ASSAY_FIELD(cooperative);
}

/// PTX text of one module; `path` is for messages only.
struct Module {
  std::string name;
  std::string path;
  std::shared_ptr<const std::string> ptx;
  /// Its variables in global memory that are buffers of the run, by name, with their addresses; the others
  /// are made for each run and begin as the text says. On the machine only.
  std::map<std::string, uint64_t> places;
};
template <typename Io>
void fields(Io& io, Module& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(path);
  ASSAY_FIELD(ptx);
  ASSAY_FIELD(places);
}

/// What the program writes: allocated, filled with Program::poison and read back after the run. One by the
/// name of an input is that input, read and written.
struct ProgramOutput {
  std::string name;
  Dtype dtype;
  std::vector<Axis> axes;
};
template <typename Io>
void fields(Io& io, ProgramOutput& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(axes);
}

/// The buffer `name` lies in the bytes of the buffer `storage`, from `offset` on. Several may, and may
/// overlap: what holds values before the run is copied there in the order of names, inputs first.
struct Alias {
  std::string name, storage;
  int64_t offset = 0;  ///< bytes
};
template <typename Io>
void fields(Io& io, Alias& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(storage);
  ASSAY_FIELD(offset);
}

/// Its buffers, by name: the tensors it is run with, its outputs, workspaces and constants (buffers.h). Its
/// steps are launches, of its own code or of what fills and copies buffers (steps.h).
struct Program {
  std::string name;
  std::vector<Module> modules;
  std::vector<Workspace> workspaces;
  std::vector<ProgramOutput> outputs;
  std::vector<Tensor> constants;  ///< uploaded before the first launch (chunk tables)
  std::vector<Alias> aliases;
  std::vector<Launch> launches;                 ///< the steps, in order
  std::map<std::string, TensorLayout> layouts;  ///< of inputs that are views; the others lie row by row
  /// Addresses of buffers whose place the program's own bytes know, as tables of pointers do: on the machine
  /// only.
  std::map<std::string, uint64_t> places;
  /// Empty: all blocks of every launch. Else those that run (block_choice.h), on the machine only; outputs
  /// and workspaces beyond kLargestHeld bytes are then made page by page where they are touched.
  std::string blocks;
  /// Every byte of outputs and workspaces before the first launch; on the machine also of shared memory,
  /// local memory and registers at the start of a block. 0xff: NaN in every float format.
  uint8_t poison = 0xff;
};
template <typename Io>
void fields(Io& io, Program& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(modules);
  ASSAY_FIELD(workspaces);
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(constants);
  ASSAY_FIELD(aliases);
  ASSAY_FIELD(launches);
  ASSAY_FIELD(layouts);
  ASSAY_FIELD(places);
  ASSAY_FIELD(blocks);
  ASSAY_FIELD(poison);
}

}  // namespace assay
