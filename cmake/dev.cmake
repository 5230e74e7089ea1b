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

# The names of all tests that the build knows of: not those that are found when a program is built.
function(punctual_tests_below folder out)
  get_property(names DIRECTORY "${folder}" PROPERTY TESTS)
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    punctual_tests_below("${below}" more)
    list(APPEND names ${more})
  endforeach()
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

if(PUNCTUAL_BUILD_EXAMPLES)
  add_subdirectory(examples)
endif()
if(PUNCTUAL_BUILD_BENCH)
  add_subdirectory(bench)
endif()
if(PUNCTUAL_BUILD_TESTS)
  add_subdirectory(tests)
  punctual_tests_below("${PROJECT_SOURCE_DIR}" names)
  get_property(programs GLOBAL PROPERTY punctual_programs)
  file(WRITE "${PROJECT_BINARY_DIR}/tests/other_tests.cmake"
       "set(other_tests [==[${names}]==])\nset(programs [==[${programs}]==])\n")
endif()
