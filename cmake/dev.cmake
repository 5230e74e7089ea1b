# What this project's developers build beside the library. Each part is off unless a preset asks.

option(PUNCTUAL_BUILD_TESTS "Build the tests (needs Catch2 and Python)" OFF)
option(PUNCTUAL_BUILD_BENCH "Build the benchmarks (needs Google Benchmark)" OFF)
option(PUNCTUAL_BUILD_EXAMPLES "Build the examples" OFF)

set(CMAKE_CXX_EXTENSIONS OFF)
enable_testing()

# Reads a line `// <key>: <words>` from the first lines of a source file: what the build must know
# about a file stands in that file. Leaves a list, empty where there is no such line.
function(punctual_words_of file key out)
  file(STRINGS "${file}" lines LIMIT_COUNT 12)
  set(words)
  foreach(line IN LISTS lines)
    if(line MATCHES "^// ${key}:(.*)$")
      separate_arguments(words UNIX_COMMAND "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${out} ${words} PARENT_SCOPE)
endfunction()

# Adds each folder below this one that brings a CMakeLists.txt of its own.
function(punctual_add_folders)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true *)
  foreach(folder IN LISTS folders)
    if(EXISTS "${folder}/CMakeLists.txt")
      add_subdirectory("${folder}")
    endif()
  endforeach()
endfunction()

if(PUNCTUAL_BUILD_EXAMPLES)
  add_subdirectory(examples)
endif()
if(PUNCTUAL_BUILD_BENCH)
  add_subdirectory(bench)
endif()
if(PUNCTUAL_BUILD_TESTS)
  add_subdirectory(tests)
endif()
