#include "src/base/program/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

Tensor shape_of(const std::string& name, Dtype dtype, const std::vector<Axis>& axes) {
  Tensor shape;
  shape.name = name, shape.dtype = dtype, shape.axes = axes;
  return shape;
}

class Gathering {
 public:
  explicit Gathering(const Program& program) : program_(program) {}

  void add_input(const std::string& name, const Tensor& tensor) {
    Buffer made = of_tensor(name, tensor, Buffer::Use::in);
    const auto layout = program_.layouts.find(name);
    if (layout != program_.layouts.end()) {
      made.layout = &layout->second;
      made.bytes = layout->second.elements * format(tensor.dtype).bytes;
    }
    add(std::move(made));
  }

  void add_constant(const Tensor& tensor) { add(of_tensor(tensor.name, tensor, Buffer::Use::constant)); }

  void add_output(const ProgramOutput& output) {
    Tensor shape = shape_of(output.name, output.dtype, output.axes);
    if (Buffer* known = find(output.name); known && known->use == Buffer::Use::in)
      return write(*known, shape);
    Buffer made{.name = output.name, .use = Buffer::Use::out, .shape = shape, .bytes = shape.bytes()};
    add(std::move(made));
  }

  void add_workspace(const Workspace& workspace) {
    if (workspace.bytes < 0) fail("workspace {} has a negative size", workspace.name);
    Buffer made{.name = workspace.name, .use = Buffer::Use::workspace, .bytes = workspace.bytes};
    if (const Buffer* copied = find(workspace.copy_of)) made.shape = copied->shape;
    if (!workspace.axes.empty()) made.shape.axes = workspace.axes;
    add(std::move(made));
  }

  void place(const Alias& alias) {
    Buffer* here = find(alias.name);
    const Buffer* storage = find(alias.storage);
    if (!here) fail("the alias {} is no buffer of the program", alias.name);
    if (!storage) fail("{} lies in {}, which is no buffer of the program", alias.name, alias.storage);
    const bool lent = std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) {
      return b.storage == static_cast<int>(here - buffers.data());
    });
    if (here == storage || storage->storage >= 0 || here->storage >= 0 || lent)
      fail("{} cannot lie in {}: a storage lies in no other, and a buffer in one", alias.name, alias.storage);
    if (here->layout || storage->layout)
      fail("{} cannot lie in {}: a view has memory of its own", alias.name, alias.storage);
    if (alias.offset < 0 || alias.offset > storage->bytes || here->bytes > storage->bytes - alias.offset)
      fail("{}, {} bytes from byte {} on, is not within the {} bytes of {}", alias.name, here->bytes,
           alias.offset, storage->bytes, alias.storage);
    here->storage = static_cast<int>(storage - buffers.data());
    here->offset = alias.offset;
  }

  std::vector<Buffer> buffers;

 private:
  template <class... Parts>
  [[noreturn]] void fail(fmt::format_string<Parts...> text, Parts&&... parts) const {
    throw BadInput(program_.name + ": " + fmt::format(text, std::forward<Parts>(parts)...));
  }

  static Buffer of_tensor(const std::string& name, const Tensor& tensor, Buffer::Use use) {
    return {.name = name,
            .use = use,
            .shape = shape_of(tensor.name, tensor.dtype, tensor.axes),
            .bytes = tensor.bytes(),
            .contents = &tensor};
  }

  Buffer* find(const std::string& name) {
    const auto found =
        std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == name; });
    return found == buffers.end() ? nullptr : &*found;
  }

  void add(Buffer made) {
    if (find(made.name)) fail("two buffers are named {}", made.name);
    buffers.push_back(std::move(made));
  }

  void write(Buffer& input, const Tensor& shape) const {
    if (input.layout) fail("{} is read and written, and must lie row by row", input.name);
    if (input.shape.dtype != shape.dtype || input.shape.axes != shape.axes)
      fail("{} is read as {} {} and written as {} {}", input.name, format(input.shape.dtype).name,
           input.shape.shape_text(), format(shape.dtype).name, shape.shape_text());
    input.use = Buffer::Use::in_out;
  }

  const Program& program_;
};

}  // namespace

std::vector<Buffer> buffers_of(const Program& program, const TensorMap& inputs) {
  Gathering gathering(program);
  for (const auto& [name, tensor] : inputs) gathering.add_input(name, tensor);
  for (const Tensor& constant : program.constants) gathering.add_constant(constant);
  for (const ProgramOutput& output : program.outputs) gathering.add_output(output);
  for (const Workspace& workspace : program.workspaces) gathering.add_workspace(workspace);
  for (const Alias& alias : program.aliases) gathering.place(alias);
  return std::move(gathering.buffers);
}

bool is_shared(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  const auto self = static_cast<int>(&buffer - buffers.data());
  return buffer.storage >= 0 || std::any_of(buffers.begin(), buffers.end(),
                                            [&](const Buffer& other) { return other.storage == self; });
}

}  // namespace assay
