/* The installed program: all of it is in libassay. */
int assay_main(int argc, char** argv);

int main(int argc, char** argv) {
  return assay_main(argc, argv);
}
