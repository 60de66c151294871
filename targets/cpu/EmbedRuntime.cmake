# cmake -DOUT=file.inc -DHEADER=pto_abi.h "-DOBJECTS=arch:path;..." -P EmbedRuntime.cmake
#
# Writes the objects as C++ arrays, and the header as a string.
set(arrays "")
set(table "const RuntimeObject embeddedObjects[] = {\n")
set(index 0)
foreach(entry ${OBJECTS})
  string(REGEX MATCH "^([^:]+):(.*)$" _ "${entry}")
  set(arch ${CMAKE_MATCH_1})
  set(path ${CMAKE_MATCH_2})
  get_filename_component(name ${path} NAME)
  file(READ ${path} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays
    "const unsigned char object${index}[] = {${bytes}};\n")
  string(APPEND table "    {\"${arch}\", \"${name}\",\n"
    "     llvm::StringRef(reinterpret_cast<const char *>(object${index}), ${size})},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(READ ${HEADER} header)
file(WRITE ${OUT} "${arrays}${table}};\nconst char embeddedHeader[] = R\"abi(${header})abi\";\n")
