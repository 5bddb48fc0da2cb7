// What is kept of compiled texts, with functions here in the driver's place.
#include "src/preload/compiled_texts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "src/base/tensor/tensor_file.h"
#include "src/preload/watched_process.h"
#include "tests/tensor/scratch_folder.h"

namespace assay::preload {
namespace {

int compilations = 0, major_capability = 9;
bool has_context = true;

int context_device(int* device) {
  *device = 0;
  return has_context ? 0 : 201;
}
int attribute(int* value, int which, int) {
  *value = which == 75 ? major_capability : 0;
  return 0;
}
int create(unsigned, void*, void*, void** state) {
  *state = new std::string;
  return has_context ? 0 : 201;
}
int add(void* state, int, void* text, size_t bytes, const char*, unsigned, void*, void*) {
  auto& made = *static_cast<std::string*>(state);
  made = "code of " + std::string(static_cast<const char*>(text), bytes - 1);
  return made.ends_with("refused") ? 218 : 0;
}
int complete(void* state, void** code, size_t* bytes) {
  auto& made = *static_cast<std::string*>(state);
  *code = made.data(), *bytes = made.size();
  ++compilations;
  return 0;
}
int destroy(void* state) {
  delete static_cast<std::string*>(state);
  return 0;
}

}  // namespace

/// In place of watched_process.cpp's.
void* next_function(const char* name) {
  const std::pair<std::string_view, void*> functions[] = {
      {"cuCtxGetDevice", reinterpret_cast<void*>(&context_device)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(&attribute)},
      {"cuLinkCreate_v2", reinterpret_cast<void*>(&create)},
      {"cuLinkAddData_v2", reinterpret_cast<void*>(&add)},
      {"cuLinkComplete", reinterpret_cast<void*>(&complete)},
      {"cuLinkDestroy", reinterpret_cast<void*>(&destroy)},
  };
  for (const auto& [known, function] : functions)
    if (known == name) return function;
  return nullptr;
}

namespace {

int compilations_of(const CompiledTexts& texts, const std::string& text) {
  const int before = compilations;
  EXPECT_EQ(texts.compiled(text), "code of " + text);
  return compilations - before;
}

TEST(CompiledTexts, AreCompiledOnceForEachKindOfGpu) {
  const ScratchFolder here;
  const std::filesystem::path folder = here / "code";
  EXPECT_EQ(compilations_of(CompiledTexts(folder), "a"), 1);
  EXPECT_EQ(compilations_of(CompiledTexts(folder), "a"), 0);
  EXPECT_EQ(compilations_of(CompiledTexts(folder), "b"), 1);
  major_capability = 8;
  EXPECT_EQ(compilations_of(CompiledTexts(folder), "a"), 1);
  major_capability = 9;
  EXPECT_EQ(CompiledTexts(folder).kept("a", 90), "code of a");
  EXPECT_EQ(CompiledTexts(folder).kept("a", 100), "");
}

TEST(CompiledTexts, NothingIsKeptWithoutAFolder) {
  EXPECT_EQ(compilations_of(CompiledTexts(""), "a"), 1);
  EXPECT_EQ(compilations_of(CompiledTexts(""), "a"), 1);
  EXPECT_EQ(CompiledTexts("").kept("a", 90), "");
}

// Of a text that the driver was not asked for, or refused, anybody can compile what is there.
TEST(CompiledTexts, TextsOfWhichNothingIsKeptAreThere) {
  const ScratchFolder here;
  has_context = false;
  EXPECT_EQ(CompiledTexts(here / "").compiled("a"), "");
  has_context = true;
  EXPECT_EQ(CompiledTexts(here / "").compiled("refused"), "");
  EXPECT_EQ(CompiledTexts(here / "").kept("b", 90), "");
  std::map<std::string, std::filesystem::path> names;
  for (const auto& file : std::filesystem::directory_iterator(here / ""))
    names[read_file(file.path())] = file.path();
  ASSERT_EQ(names.size(), 3u);
  ASSERT_TRUE(names.contains("a") && names.contains("refused") && names.contains("b"));
  std::ofstream(names.at("b").replace_extension("sm_90.cubin")) << "made by hand";
  EXPECT_EQ(CompiledTexts(here / "").kept("b", 90), "made by hand");
}

// Another text of the same hash, or a file that was cut short.
TEST(CompiledTexts, WhatStandsBesideAnotherTextIsNotTaken) {
  const ScratchFolder here;
  EXPECT_EQ(compilations_of(CompiledTexts(here / ""), "a"), 1);
  for (const auto& file : std::filesystem::directory_iterator(here / ""))
    if (file.path().extension() == ".ptx") std::ofstream(file.path()) << "another";
  EXPECT_EQ(compilations_of(CompiledTexts(here / ""), "a"), 1);
  EXPECT_EQ(compilations_of(CompiledTexts(here / ""), "a"), 0);
}

}  // namespace
}  // namespace assay::preload
