# Read by ctest after all lists of tests. A program in which no case was found fails, and the timing
# tests wait for all others, so that they run when nothing else does.
include("${CMAKE_CURRENT_LIST_DIR}/other_tests.cmake")
foreach(program IN LISTS programs)
  if(NOT ${program}_TESTS)
    add_test("${program} has no test case" "@CMAKE_COMMAND@" -E false)
  elseif(NOT program STREQUAL punctual_timing)
    list(APPEND other_tests ${${program}_TESTS})
  endif()
endforeach()
if(punctual_timing_TESTS)
  set_tests_properties(${punctual_timing_TESTS} PROPERTIES DEPENDS "${other_tests}")
endif()
