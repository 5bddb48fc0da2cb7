// What source files are called in results: by their paths below the root of the sources, which are the same
// in every checkout.
#pragma once
#include <filesystem>
#include <string>

namespace assay {

/// The folder that was chosen; else the work tree of git that holds the working directory; else that
/// directory.
std::filesystem::path source_root();
/// Chooses it, before any PTX is read. Throws BadInput where it is no folder.
void choose_source_root(const std::filesystem::path&);
/// "/home/me/repo/src/a.cu" -> "src/a.cu"; of a file that lies nowhere on this host the longest tail of its
/// path that lies below the root. What lies elsewhere keeps its name, and so does what has a relative one.
std::string source_name(const std::string& file);
/// The text with its .file directives so renamed; no line is added or taken away.
std::string with_source_names(const std::string& ptx);

}  // namespace assay
