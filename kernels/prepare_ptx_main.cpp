// Build step: prepare_ptx IN OUT SOURCE_ROOT writes OUT and, for embedding, OUT.z: the text's length as 8
// bytes, low first, then a zlib stream.
#include <zlib.h>

#include <cstdint>
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
    const std::string ptx = assay::prepare_ptx(text.str(), argv[3]);
    std::string packed(compressBound(ptx.size()) + 8, '\0');
    uLongf size = packed.size() - 8;
    if (compress2(reinterpret_cast<Bytef*>(packed.data()) + 8, &size,
                  reinterpret_cast<const Bytef*>(ptx.data()), ptx.size(), 9) != Z_OK)
      return std::cerr << argv[1] << ": cannot compress\n", 2;
    packed.resize(size + 8);
    for (int i = 0; i < 8; ++i) packed[i] = static_cast<char>(uint64_t{ptx.size()} >> (8 * i));
    std::ofstream out(argv[2], std::ios::binary), out_packed(std::string(argv[2]) + ".z", std::ios::binary);
    out << ptx;
    out_packed << packed;
    return out.flush() && out_packed.flush() ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << '\n';
    return 2;
  }
}
