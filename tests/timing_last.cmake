# Read by ctest after all lists of tests: the timing tests wait for every test program but their own, so
# that they run when nothing else does.
if(punctual_timing_TESTS)
  set_tests_properties(
    ${punctual_timing_TESTS}
    PROPERTIES
      DEPENDS
      "${punctual_unit_TESTS};${punctual_kernels_TESTS};${punctual_contract_TESTS};${punctual_cases_TESTS}"
  )
endif()
