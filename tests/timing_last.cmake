# Read by ctest after all lists of tests: the timing tests wait for all others, so that they run
# when nothing else does.
include("${CMAKE_CURRENT_LIST_DIR}/other_tests.cmake")
foreach(suite IN ITEMS unit unit_asan contract contract_ubsan threads_tsan kernels cases)
  list(APPEND other_tests ${punctual_${suite}_TESTS})
endforeach()
if(punctual_timing_TESTS)
  set_tests_properties(${punctual_timing_TESTS} PROPERTIES DEPENDS "${other_tests}")
endif()
