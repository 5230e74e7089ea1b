// Mistake that would live without it: an optional instruction (rdtscp, tpause, umwait) reached
// without asking, or a counter read where the kernel makes it fault.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <punctual/punctual.hpp>

#include <array>
#include <cstdio>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

using namespace std::chrono_literals;
using namespace punctual;

namespace {

bool waits_well(sleeper& s) {
  for (int i = 0; i < 50; ++i) {
    const instant due = steady::now() + 300us;
    if (s.sleep_until(due).why != outcome::reached || steady::now() < due) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("b32: this program, which includes everything, holds no optional waiting instruction",
          "[cases][b32]") {
  std::array<char, 4096> self{};
  const auto length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  REQUIRE(length > 0);
  const std::string command =
      "objdump -d --no-show-raw-insn '" + std::string(self.data()) +
      "' 2>/dev/null | awk '/\\trdtsc *$/ {c++} /\\t(tpause|umwait|umonitor|rdtscp|mwaitx)/ {o++}"
      " END {print (c>0) + 0, o + 0}'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  int counter = -1, optional = -1;
  const int fields = std::fscanf(pipe, "%d %d", &counter, &optional);
  ::pclose(pipe);
  REQUIRE(fields == 2);
  if (native_platform::counter_facts().usable && counter == 0) {
    return support::skip("objdump is not here");
  }
  CHECK(optional == 0);
}

TEST_CASE("b32: without the counter every promise still holds", "[cases][b32]") {
  tuning how;
  how.use_counter = false;
  sleeper s{how};
  CHECK(waits_well(s));
  CHECK_FALSE(s.described().counter_used);
}

TEST_CASE("b32: where the kernel makes counter reads fault, none is made", "[cases][b32][G7]") {
  const int code = support::in_child([] {
    if (::prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0) return 77;
    sleeper s;
    if (s.described().counter_used) return 1;
    return waits_well(s) ? 0 : 2;
  });
  if (code == 77) return support::skip("the counter cannot be switched off here");
  if (code == -SIGSEGV) return support::skip("the C library's own clock reads the counter here");
  CHECK(code == 0);
}
