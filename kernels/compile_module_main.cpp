// Build step: compile_module ROOT MODULE OUT compiles a module from the sources below ROOT, or finds it
// compiled (compile_ptx.h). OUT becomes its PTX, or, where it ends with .z, the PTX packed (packed_text.h),
// or, where it ends with .compiled, empty: then the program takes the module from the folder of compiled
// modules. OUT.d names the sources for the build tool.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "kernels/compile_ptx.h"
#include "kernels/packed_text.h"

namespace {

namespace fs = std::filesystem;

assay::SourceTree kernels_below(const fs::path& root) {
  assay::SourceTree tree;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(root / "kernels")) {
    const std::string ending = file.path().extension().string();
    if (ending != ".cu" && ending != ".cuh" && ending != ".h") continue;
    std::ifstream in(file.path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    tree.emplace_back(fs::relative(file.path(), root).string(), text.str());
  }
  return tree;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << text).flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: compile_module ROOT MODULE OUT\n", 2;
  try {
    const fs::path root = argv[1], out = argv[3];
    const assay::SourceTree tree = kernels_below(root);
    const std::string ptx = *assay::compile_module(tree, argv[2]);
    fs::create_directories(out.parent_path());
    std::string sources = out.string() + ':';
    for (const auto& [path, text] : assay::with_includes(tree, assay::source_path(argv[2])))
      sources += ' ' + (root / path).string();
    write(out.string() + ".d", sources + '\n');
    write(out, out.extension() == ".compiled" ? "" : out.extension() == ".z" ? assay::packed(ptx) : ptx);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "assay: " << error.what() << '\n';
    return 2;
  }
}
