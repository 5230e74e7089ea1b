// Mistake that would live without it: a calibration that is frozen; a request that the margin
// leaves nothing of, made over and over; a margin too small that nothing pulls up.
#include "support/catch.hpp"

#include <punctual/pacer.hpp>
#include <punctual/testing/simulated_platform.hpp>

#include <algorithm>

using namespace std::chrono_literals;
using namespace punctual;
using punctual::testing::native_request;
using punctual::testing::simulated_platform;
using punctual::testing::simulation;

namespace {

struct machine {
  simulation world;
  nanoseconds oversleep;
  basic_sleeper<simulated_platform> sleeper{tuning{}, simulated_platform{world}};
  int early = 0;

  explicit machine(nanoseconds by) : oversleep(by) {
    world.kernel = [this](const native_request& r) { return later(r.until, oversleep); };
  }
  receipt wait(nanoseconds length) {
    const instant due = world.time() + length;
    const receipt did = sleeper.sleep_until(due);
    early += world.time() < due;
    return did;
  }
};

}  // namespace

TEST_CASE("b03: a machine that was slow at the start is not spun on for good", "[cases][b03]") {
  const nanoseconds at_first = GENERATE(nanoseconds{1200us}, 4ms);
  machine m(at_first);
  const instant start = m.world.time();
  std::uint32_t most = 0;
  while (m.world.time() - start < 200ms) most = std::max(most, m.wait(1ms).native_waits);
  m.oversleep = 100us;
  int slept = 0;
  for (int i = 0; i < 700; ++i) {
    const receipt did = m.wait(1ms);
    most = std::max(most, did.native_waits);
    if (i >= 200) slept += did.native_waits > 0;
  }
  CHECK(most <= 3);
  CHECK(slept >= 400);
  CHECK(m.early == 0);
}

TEST_CASE("b03: a kernel that gets slower for good costs a few late waits", "[cases][b03]") {
  const nanoseconds length = GENERATE(nanoseconds{16'667us}, 40ms);
  machine m(0ns);
  for (int i = 0; i < 5000; ++i) m.wait(length);
  m.oversleep = 3ms;
  int late = 0;
  for (int i = 0; i < 2000; ++i) late += m.wait(length).late > 1ms;
  CHECK(late <= 5);
  CHECK(m.early == 0);
}

TEST_CASE("b03: a minute of frames is a minute of frames on a machine 12 ms late", "[cases][b03]") {
  const nanoseconds late = GENERATE(nanoseconds{12ms}, 7ms);
  simulation world;
  world.kernel = [late](const native_request& r) { return later(r.until, late); };
  basic_pacer<simulated_platform> p{hz(30), missed::skip, 3, {}, simulated_platform{world}};
  const instant end = p.next().due + 60s;
  int frames = 0;
  while (p.next().due <= end) ++frames;
  CHECK(frames >= 1799);
  CHECK(frames <= 1801);
}
