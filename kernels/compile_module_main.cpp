// Build step: compile_module ROOT OUT MODULE... compiles modules from the sources below ROOT, or finds them
// compiled (compile_ptx.h). OUT becomes the PTX of one, or, where it ends with .zst, all of them packed
// together (packed_group.h), or, where it ends with .compiled, empty: then the program takes the module from
// the folder of compiled modules. OUT.d names the sources for the build tool.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <span>
#include <sstream>

#include "kernels/compile_ptx.h"
#include "kernels/packed_group.h"

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
  if (argc < 4) return std::cerr << "usage: compile_module ROOT OUT MODULE...\n", 2;
  try {
    const fs::path root = argv[1], out = argv[2];
    const assay::SourceTree tree = kernels_below(root);
    std::vector<std::pair<std::string, std::string>> texts;
    std::set<std::string> sources;
    for (const std::string module : std::span(argv, argc).subspan(3)) {
      texts.emplace_back(module, *assay::compile_module(tree, module));
      for (const auto& [path, text] : assay::with_includes(tree, assay::source_path(module)))
        sources.insert((root / path).string());
    }
    fs::create_directories(out.parent_path());
    std::string dependencies = out.string() + ':';
    for (const std::string& source : sources) dependencies += ' ' + source;
    write(out.string() + ".d", dependencies + '\n');
    const std::string form = out.extension();
    write(out, form == ".compiled" ? "" : form == ".zst" ? assay::packed_group(texts) : texts.front().second);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "assay: " << error.what() << '\n';
    return 2;
  }
}
