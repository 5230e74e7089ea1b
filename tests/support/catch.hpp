// The one door to Catch2 for every test: version 2 (Debian 12's package `catch2`) and version 3.
// Include it as "support/catch.hpp" and use what both have: TEST_CASE, TEMPLATE_TEST_CASE, SECTION,
// GENERATE, REQUIRE, CHECK, INFO, CAPTURE, Catch::Approx. Durations are printed with their unit.
#pragma once

#define CATCH_CONFIG_ENABLE_CHRONO_STRINGMAKER
#define CATCH_CONFIG_FAST_COMPILE

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#else
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;  // where version 3 has it
}
#endif
