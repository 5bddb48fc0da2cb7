// loads_modules NAME: a module whose kernel is called so, by each function that loads one. Prints what each
// returns.
#include <cstdint>
#include <cstdio>
#include <string>

extern "C" {
int cuModuleLoadData(void*, const void*);
int cuModuleLoadDataEx(void*, const void*, unsigned, void*, void**);
int cuModuleLoadFatBinary(void*, const void*);
int cuLibraryLoadData(void*, const void*, void*, void**, unsigned, void*, void*, unsigned);
}

int main(int, char** arguments) {
  const std::string text = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry " +
                           std::string(arguments[1]) +
                           "()\n{\n.reg .f32 %f<2>;\nadd.rn.f32 %f0, %f1, %f1;\nret;\n}\n";
  const auto values = [] { return reinterpret_cast<void*>(uintptr_t{64}); };
  int which = 5;  // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
  void* made = nullptr;
  void *one = values(), *two = values();
  std::printf("%d ", cuModuleLoadData(&made, text.c_str()));
  std::printf("%d ", cuModuleLoadDataEx(&made, text.c_str(), 1, &which, &one));
  std::printf("%d ", cuModuleLoadFatBinary(&made, text.c_str()));
  std::printf("%d\n", cuLibraryLoadData(&made, text.c_str(), &which, &two, 1, nullptr, nullptr, 0));
}
