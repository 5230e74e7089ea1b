// Mistake that would live without it: the first frame of a fresh process waits for a calibration,
// and the loop begins with a hitch.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <punctual/pacer.hpp>

#include <algorithm>

using namespace std::chrono_literals;
using namespace punctual;

TEST_CASE("b31c: the first interval of a cold pacer is a period and no hitch", "[cases][b31]") {
  // In milliseconds beyond the period; best of 10 fresh processes. None may be early.
  int best = 1'000;
  bool early = false;
  bool lost = false;
  for (int i = 0; i < 10; ++i) {
    const int beyond = support::in_child([] {
      pacer p{hz(60)};
      const beat first = p.next();
      const beat second = p.next();
      const instant returned = steady::now();
      if (returned < first.due + 16'666'666ns) return 201;
      if (second.skipped != 0) return 202;  // the interval was two periods or more
      return static_cast<int>((returned - first.due - 16'666'666ns) / 1ms);
    });
    REQUIRE(beyond >= 0);
    early = early || beyond == 201;
    lost = lost || beyond == 202;
    best = std::min(best, beyond);
  }
  CHECK_FALSE(early);
  CHECK(best <= 10);
  if (lost) WARN("a cold first frame took two periods once in ten: this machine was busy");
}
