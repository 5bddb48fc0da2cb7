// PTX modules of our kernels: one per kernel source, element format and gate format. They are compiled when
// first asked for (compile_ptx.h), or lie in the program, where it was built with ASSAY_EMBED_PTX.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/compile_ptx.h"
#include "src/base/program/program.h"

namespace assay {

/// One of them by name, "simple_gla/chunk.bf16.token-fp32": folder and source, element format, gates.
Module kernel_module(const std::string& name);
/// The module of kernels/gla/<mode>.cu ("chunk", "fused_recurrent") for the formats of q, k, v, o and of g.
Module gla_module(std::string_view mode, Dtype element, Dtype gate);

/// All of them, for tests and tools that look at the text.
std::vector<Module> kernel_modules();

/// A file of this folder (kernel source, header or patch) as it was at build time, by path from the source
/// root.
struct SourceFile {
  std::string_view path, text;
};
const std::vector<SourceFile>& embedded_sources();
/// Those of them that kernels are made of.
const SourceTree& kernel_sources();

/// The program with all its modules compiled plainly from these sources. Throws as compile_module.
Program compiled_plainly(Program, const SourceTree&);

}  // namespace assay
