//===- DataObject.cpp - Bytes as a linkable object ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/DataObject.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"
#include <cassert>

namespace pto::targets {
namespace {

/// Little-endian fields, one after the other.
class FieldWriter {
public:
  explicit FieldWriter(llvm::raw_ostream &out) : out(out) {}
  template <typename T> FieldWriter &operator<<(T value) {
    llvm::support::endian::write(out, value, llvm::endianness::little);
    return *this;
  }

private:
  llvm::raw_ostream &out;
};

/// A string table: names appended, offsets handed out.
class StringTable {
public:
  uint32_t add(llvm::StringRef name) {
    uint32_t at = static_cast<uint32_t>(text.size());
    text += name;
    text += '\0';
    return at;
  }
  std::string text = std::string(1, '\0');
};

struct SectionHeader {
  uint32_t name = 0, type = 0;
  uint64_t flags = 0, offset = 0, size = 0;
  uint32_t link = 0, info = 0;
  uint64_t align = 0, entrySize = 0;
};

void write(FieldWriter &fields, const SectionHeader &header) {
  fields << header.name << header.type << header.flags << uint64_t(0)
         << header.offset << header.size << header.link << header.info
         << header.align << header.entrySize;
}

} // namespace

llvm::Error writeDataObject(llvm::raw_ostream &out, const DataSection &section,
                            const Target &target) {
  using namespace llvm::ELF;
  llvm::Triple triple(target.triple);
  uint16_t machine = triple.isX86()       ? EM_X86_64
                     : triple.isAArch64() ? EM_AARCH64
                                          : 0;
  if (!machine)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "no ELF data object for triple " +
                                       target.triple);
  assert(llvm::isPowerOf2_64(section.alignment) && "ELF wants a power of two");

  // Layout: header, contents, symbols, names, section headers.
  StringTable names, sectionNames;
  constexpr uint64_t headerSize = 64, symbolSize = 24;
  SectionHeader contents, symbols, strings, shstrings;
  contents.name = sectionNames.add(section.name);
  contents.type = SHT_PROGBITS;
  contents.flags = SHF_ALLOC | (section.executable ? SHF_EXECINSTR : 0);
  contents.offset = llvm::alignTo(headerSize, section.alignment);
  contents.size = section.size;
  contents.align = section.alignment;

  std::string symbolText;
  llvm::raw_string_ostream symbolOut(symbolText);
  FieldWriter symbolFields(symbolOut);
  symbolOut.write_zeros(symbolSize);
  for (const DataSymbol &symbol : section.symbols) {
    unsigned type = symbol.function ? STT_FUNC : STT_OBJECT;
    symbolFields << names.add(symbol.name)
                 << static_cast<uint8_t>(STB_GLOBAL << 4 | type)
                 << static_cast<uint8_t>(STV_DEFAULT) << uint16_t(1)
                 << symbol.offset << symbol.size;
  }
  symbols.name = sectionNames.add(".symtab");
  symbols.type = SHT_SYMTAB;
  symbols.offset = llvm::alignTo(contents.offset + contents.size, 8);
  symbols.size = symbolText.size();
  symbols.link = 3;
  symbols.info = 1; // index of the first global symbol
  symbols.align = 8;
  symbols.entrySize = symbolSize;

  strings.name = sectionNames.add(".strtab");
  strings.type = SHT_STRTAB;
  strings.offset = symbols.offset + symbols.size;
  strings.size = names.text.size();
  strings.align = 1;

  shstrings.name = sectionNames.add(".shstrtab");
  shstrings.type = SHT_STRTAB;
  shstrings.offset = strings.offset + strings.size;
  shstrings.size = sectionNames.text.size();
  shstrings.align = 1;
  uint64_t tableOffset = llvm::alignTo(shstrings.offset + shstrings.size, 8);

  FieldWriter fields(out);
  out.write(ElfMagic, 4);
  fields << uint8_t(ELFCLASS64) << uint8_t(ELFDATA2LSB) << uint8_t(EV_CURRENT)
         << uint8_t(ELFOSABI_NONE) << uint64_t(0) << uint16_t(ET_REL) << machine
         << uint32_t(EV_CURRENT) << uint64_t(0) << uint64_t(0) << tableOffset
         << uint32_t(0) << uint16_t(headerSize) << uint16_t(0) << uint16_t(0)
         << uint16_t(64) << uint16_t(5) << uint16_t(4);

  uint64_t at = headerSize;
  auto padTo = [&](uint64_t offset) {
    assert(offset >= at && "chunks overlap or are out of order");
    for (uint64_t left = offset - at; left;) {
      unsigned step = static_cast<unsigned>(std::min<uint64_t>(left, 1 << 20));
      out.write_zeros(step);
      left -= step;
    }
    at = offset;
  };
  for (const DataChunk &chunk : section.chunks) {
    padTo(contents.offset + chunk.offset);
    out.write(chunk.bytes.data(), chunk.bytes.size());
    at += chunk.bytes.size();
  }
  padTo(symbols.offset);
  out << symbolText << names.text << sectionNames.text;
  at = shstrings.offset + shstrings.size;
  padTo(tableOffset);
  write(fields, SectionHeader());
  for (const SectionHeader *header :
       {&contents, &symbols, &strings, &shstrings})
    write(fields, *header);
  return llvm::Error::success();
}

} // namespace pto::targets
