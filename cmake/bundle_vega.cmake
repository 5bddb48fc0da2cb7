# Joins Debian's Vega modules (UMD files that ask for each other by name) into one script that defines `vega_module`.
# Run as: cmake -DVEGA_DIR=... -DOUTPUT=... -P bundle_vega.cmake
# Order does not matter: a module is evaluated when it is first asked for.
set(modules util time format loader dataflow scale statistics canvas scenegraph expression selection functions
    event-selector runtime parser view transforms view-transforms encode interpreter)
set(script "")
if(EXISTS /usr/share/doc/libjs-vega/copyright)
  file(READ /usr/share/doc/libjs-vega/copyright notice)
  string(REPLACE "*/" "* /" notice "${notice}")
  string(APPEND script "/* Vega (and the parts of D3 it carries), as packaged by Debian in libjs-vega.\n${notice}*/\n")
endif()
string(APPEND script "const vega_sources = {}, vega_loaded = {};\n"
  "function vega_module(name) {\n"
  "  if (!(name in vega_loaded)) {\n"
  "    const module = {exports: vega_loaded[name] = {}};\n"
  "    vega_sources[name](module.exports, vega_module, module);\n"
  "  }\n"
  "  return vega_loaded[name];\n"
  "}\n")
foreach(module ${modules})
  file(READ ${VEGA_DIR}/vega-${module}.min.js text)
  string(REGEX REPLACE "//# sourceMappingURL=[^\n]*\n?" "" text "${text}")
  set(name vega-${module})
  if(module STREQUAL "selection")
    set(name vega-selections)  # the name the other modules use
  endif()
  string(APPEND script "vega_sources[\"${name}\"] = function (exports, require, module) {${text}\n};\n")
endforeach()
file(WRITE ${OUTPUT} "${script}")
