// A type's fields, listed once. Under a type stands
//   template <typename Io> void fields(Io& io, Type& x) {
//     io.type("name", "what it is"); ASSAY_FIELD(first); .. }
// and from that follow its JSON both ways (json_fields.h), the schema of that JSON (json_schema.h) and its
// bytes between processes (byte_fields.h). An `io` takes
//   io.type(name, about)           first, where the schema names the type; else it stands where it is used
//   io(name, field, about)         a field; ASSAY_FIELD(field, about) where they share a name
//   io.later(name, field, about)   one that documents of earlier versions lack: it is then empty
//   io.or_null(name, text, about)  the same, written as null where it is empty
//   io.made(name, function, about) made from the others: written, never read
//   io.made_where(there, name, function, about)  the same, written only where it is `there`
#pragma once
#include <cstdint>

namespace assay {

#define ASSAY_FIELD(name, ...) io(#name, x.name __VA_OPT__(, ) __VA_ARGS__)
#define ASSAY_LATER(name, ...) io.later(#name, x.name __VA_OPT__(, ) __VA_ARGS__)

/// A 64-bit pattern, written as "0x7fc00000": JSON numbers lose bits beyond 2^53.
struct Bits {
  uint64_t& value;
};

}  // namespace assay
