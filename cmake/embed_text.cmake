# embed_text(<target> <function> <file> [<function> <file>]...): puts files whole into the program; `text::function()` (reports/page_text.h)
# returns them. Relinked when a file changes.
function(embed_text target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_text.cpp)
  set(body "#include \"reports/page_text.h\"\n")
  set(files "")
  while(ARGN)
    list(POP_FRONT ARGN name file)
    list(APPEND files ${file})
    string(APPEND body "
__asm__(\".pushsection .rodata\\n\"
        \".hidden assay_text_${name}\\n.hidden assay_text_${name}_end\\n\"
        \".global assay_text_${name}\\n.global assay_text_${name}_end\\n\"
        \"assay_text_${name}:\\n.incbin \\\"${file}\\\"\\nassay_text_${name}_end:\\n.byte 0\\n.popsection\\n\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char assay_text_${name}[], assay_text_${name}_end[];
std::string_view assay::text::${name}() {
  return {assay_text_${name}, static_cast<size_t>(assay_text_${name}_end - assay_text_${name})};
}
")
  endwhile()
  file(CONFIGURE OUTPUT ${source} CONTENT "${body}" @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}" SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
