# Of the functions that LIBRARY shows: OUT.S, a jump under each one's name to assay_at_NAME, and OUT.link, the linker's options that
# name them so.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T [A-Za-z0-9_]+" names "${symbols}")
set(jumps "#if defined(__aarch64__)\n#define JUMP b\n#define FUNCTION %function\n#else\n#define JUMP jmp\n#define FUNCTION @function\n#endif\n")
set(options "")
foreach(name ${names})
  string(SUBSTRING ${name} 3 -1 name)
  string(APPEND jumps ".globl ${name}\n.type ${name}, FUNCTION\n${name}: JUMP assay_at_${name}\n")
  string(APPEND options "--defsym=assay_at_${name}=${name}\n")
endforeach()
file(WRITE ${OUT}.S "${jumps}.section .note.GNU-stack,\"\"\n")
file(WRITE ${OUT}.link "${options}")
