// The program is in the library that the Python package has too (main.cpp): this only begins it.
extern "C" int assay_main(int argc, char** argv);

int main(int argc, char** argv) {
  return assay_main(argc, argv);
}
