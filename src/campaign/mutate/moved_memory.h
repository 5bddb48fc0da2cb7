// A program whose shared memory begins elsewhere.
#pragma once
#include <memory>
#include <string>

#include "src/base/program/program.h"

namespace assay {

/// The module's text with 1024 bytes of shared memory, which nothing names, before all that it declares;
/// lines keep their numbers. Null: it declares none, or has no place for it.
std::shared_ptr<const std::string> with_shared_memory_moved(const std::string& ptx);

/// The program with each of its modules like that; without launches where none of them can be.
Program with_shared_memory_moved(const Program&);

}  // namespace assay
