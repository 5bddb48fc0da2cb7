// Machine code that says how many registers its entries have.
#include "src/base/watch/own_registers.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace assay::watch {
namespace own_registers_test {

template <class T>
void put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An ELF file of the sections that are asked for: names, `.nv.info`, symbols f and g, their names.
std::string machine_code(const std::string& info) {
  const std::string names("\0.nv.info\0", 10), strings("\0f\0g\0", 5);
  std::string symbols(sizeof(Elf64_Sym), '\0');
  for (const uint32_t name : {1, 3}) {
    Elf64_Sym symbol{};
    symbol.st_name = name;
    put(symbols, symbol);
  }
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(5);
  const auto add = [&](size_t number, const std::string& contents) {
    sections[number].sh_offset = file.size(), sections[number].sh_size = contents.size();
    file += contents;
  };
  add(1, names), add(2, info), add(3, symbols), add(4, strings);
  sections[2].sh_name = 1, sections[3].sh_type = SHT_SYMTAB, sections[3].sh_link = 4;
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shoff = file.size(), head.e_shnum = 5, head.e_shentsize = sizeof(Elf64_Shdr), head.e_shstrndx = 1;
  for (const Elf64_Shdr& section : sections) put(file, section);
  std::memcpy(file.data(), &head, sizeof head);
  return file;
}

std::string attribute(uint8_t form, uint8_t kind, uint16_t size, const std::vector<uint32_t>& values) {
  std::string made;
  put(made, form), put(made, kind), put(made, size);
  for (const uint32_t value : values) put(made, value);
  return made;
}

using Registers = std::map<std::string, int>;

TEST(OwnRegisters, AreThoseOfEachEntry) {
  const std::string info = attribute(3, 0x50, 0x101, {}) + attribute(4, 0x2f, 8, {1, 40}) +
                           attribute(4, 0x37, 4, {129}) + attribute(4, 0x2f, 8, {2, 255});
  EXPECT_EQ(registers_of(machine_code(info)), (Registers{{"f", 40}, {"g", 255}}));
  EXPECT_EQ(registers_of(machine_code("")), Registers{});
}

TEST(OwnRegisters, AreUnknownOfWhatIsNoMachineCode) {
  EXPECT_EQ(registers_of(""), Registers{});
  EXPECT_EQ(registers_of(".version 8.7"), Registers{});
  const std::string whole = machine_code(attribute(4, 0x2f, 8, {1, 40}));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_EQ(registers_of(whole.substr(0, bytes)), Registers{}) << bytes;
  EXPECT_EQ(registers_of(machine_code(attribute(4, 0x2f, 8, {9'999, 40}))), Registers{});
}

}  // namespace own_registers_test
}  // namespace assay::watch
