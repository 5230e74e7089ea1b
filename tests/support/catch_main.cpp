// Catch2's own main, compiled once for all test programs. Version 3 brings it as a library instead.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include "support/catch.hpp"
#endif
