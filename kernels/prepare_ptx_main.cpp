// Build step: prepare_ptx IN OUT SOURCE_ROOT.
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include "kernels/prepare_ptx.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: prepare_ptx IN OUT SOURCE_ROOT\n", 2;
  try {
    std::ifstream in(argv[1], std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    std::ofstream out(argv[2], std::ios::binary);
    out << assay::prepare_ptx(text.str(), argv[3]);
    return out.flush() ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << '\n';
    return 2;
  }
}
