# The warnings under which punctual's own programs are compiled. Only for this project's developers:
# the exported target carries none. Presets turn them into errors (CMAKE_COMPILE_WARNING_AS_ERROR).

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef)
add_compile_options(-Wdouble-promotion "$<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>")
