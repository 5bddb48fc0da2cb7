// Containers as nvcc 13 made them (tests/data/fatbin: two entries for two targets), and damaged ones.
#include "src/base/ptx/fatbin.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/program.h"

namespace assay::ptx {
namespace {

std::string container(const std::string& name) {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/tests/data/fatbin/" + name + ".fatbin",
                     std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// A fat binary in section .nv_fatbin of an object, behind some zeros.
std::string in_an_object(const std::string& fatbin) {
  const std::string names("\0.nv_fatbin\0.shstrtab\0", 22), section = fatbin + std::string(16, '\0') + fatbin;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = sizeof head, head.e_shentsize = sizeof(Elf64_Shdr), head.e_shnum = 3, head.e_shstrndx = 2;
  Elf64_Shdr table[3] = {};
  const uint64_t first = sizeof head + sizeof table;
  table[1].sh_name = 1, table[1].sh_type = SHT_PROGBITS, table[1].sh_offset = first,
  table[1].sh_size = section.size();
  table[2].sh_name = 12, table[2].sh_type = SHT_STRTAB, table[2].sh_offset = first + section.size(),
  table[2].sh_size = names.size();
  return std::string(reinterpret_cast<char*>(&head), sizeof head) +
         std::string(reinterpret_cast<char*>(table), sizeof table) + section + names;
}

std::string what_is_said_of(const std::string& bytes) {
  try {
    embedded_texts(bytes, "k.fatbin");
  } catch (const BadInput& reason) {
    return reason.what();
  }
  return "accepted";
}

TEST(Fatbin, TextsAreTheSameHoweverTheyArePacked) {
  const std::vector<EmbeddedText> plain = embedded_texts(container("plain"), "k");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].path, "k:compute_80");
  EXPECT_EQ(plain[1].path, "k:compute_90");
  for (const EmbeddedText& text : plain) {
    const Module module = parse(text.text, text.path);
    ASSERT_EQ(module.functions.size(), 2u);
    EXPECT_EQ(module.target, "sm_" + text.path.substr(text.path.size() - 2));
  }
  for (const char* packed : {"zstd", "lz4"}) {
    const std::string bytes = container(packed);
    ASSERT_LT(bytes.size(), container("plain").size());
    const std::vector<EmbeddedText> texts = embedded_texts(bytes, "k");
    ASSERT_EQ(texts.size(), 2u) << packed;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(texts[i].text, plain[i].text) << packed;
  }
}

// A text's entry with another kind is machine code, packed as it was.
TEST(Fatbin, MachineCodeIsUnpackedAsTextsAre) {
  const std::string text = embedded_texts(container("plain"), "k")[0].text;
  for (const std::string name : {"plain", "lz4", "zstd"}) {
    std::string bytes = container(name);
    EXPECT_TRUE(embedded_machine_code(bytes, "k").empty()) << name;
    bytes[16] = 2;  // of the first entry, behind the header
    const std::vector<std::string> code = embedded_machine_code(bytes, "k");
    ASSERT_EQ(code.size(), 1u) << name;
    EXPECT_EQ(code[0].substr(0, text.size()), text) << name;
    EXPECT_EQ(embedded_texts(bytes, "k").size(), 1u) << name;
  }
}

TEST(Fatbin, ObjectsHoldSeveral) {
  const std::vector<EmbeddedText> texts = embedded_texts(in_an_object(container("zstd")), "k.o");
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[2].path, "k.o:compute_80.2");
  EXPECT_EQ(texts[2].text, texts[0].text);
  EXPECT_TRUE(is_container(container("plain")));
  EXPECT_TRUE(is_container(in_an_object("")));
  EXPECT_FALSE(is_container(texts[0].text));
  EXPECT_EQ(what_is_said_of(in_an_object("")), "k.fatbin: holds no device code");
}

/// Cut anywhere, or with any byte changed, it is damaged or holds other texts.
TEST(Fatbin, NoDamageReachesBeyondTheFile) {
  for (const std::string& bytes :
       {container("plain"), container("zstd"), container("lz4"), in_an_object(container("lz4"))}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string said = what_is_said_of(bytes.substr(0, size));
      EXPECT_NE(said, "") << size;
      const bool has_header = size > 64;
      EXPECT_TRUE(!has_header || said.find("damaged") != said.npos) << size << ": " << said;
    }
    for (size_t at = 0; at < bytes.size(); ++at)
      for (const int change : {0xff, 0x80, 0x01}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ change);
        what_is_said_of(changed);
      }
  }
}

TEST(Fatbin, SizesAreHeldAgainstTheFileBeforeAnythingIsUnpacked) {
  std::string large = container("zstd");
  const uint64_t size = uint64_t{1} << 40;
  std::memcpy(large.data() + 16 + 56, &size, 8);  // of the first text, unpacked
  EXPECT_EQ(what_is_said_of(large),
            "k.fatbin: a damaged container of device code: a text of 1099511627776 bytes");
  std::string machine_code = container("plain").substr(0, 16 + 80);
  machine_code[16] = 2;
  const uint64_t none = 0, rest = 80;
  std::memcpy(machine_code.data() + 8, &rest, 8);
  std::memcpy(machine_code.data() + 24, &none, 8);
  EXPECT_EQ(what_is_said_of(machine_code),
            "k.fatbin: holds machine code alone (sm_80), no PTX; compile it with -gencode "
            "arch=compute_90,code=compute_90 or the like");
}

}  // namespace
}  // namespace assay::ptx
