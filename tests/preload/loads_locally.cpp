// loads_locally LIBRARY ARGUMENTS: its main, the library and what it needs loaded for themselves alone.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  const auto run = library ? reinterpret_cast<int (*)(int, char**)>(dlsym(library, "main")) : nullptr;
  if (run) return run(count - 1, arguments + 1);
  std::fprintf(stderr, "%s\n", dlerror());
  return 3;
}
