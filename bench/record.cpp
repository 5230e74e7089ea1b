// Records how late this machine's kernel wakes a sleeper, wait by wait, as a trace for replay.
//
//   record [--rounds N] [--busy THREADS] [--slack] > bench/traces/NAME.trace
//
// Lengths take turns, so that a disturbance falls on all of them. One line a wait: length and
// overshoot in ns, overshoot counted from the instant that the kernel was asked for.
// smoke: --rounds 1
#include "support/facts.hpp"
#include "support/load.hpp"
#include "support/options.hpp"

#include <punctual/platform/native.hpp>

#include <cstdint>
#include <cstdio>
#include <thread>

#include <sys/utsname.h>

int main(int argc, char** argv) {
  using punctual::clock_kind;
  using punctual::instant;
  using punctual::nanoseconds;
  const bench::options given(argc, argv, "records overshoots as a trace for replay",
                             {{"rounds", "N", "how often each turn is taken, 300"},
                              {"busy", "THREADS", "so many threads compute meanwhile, 0"},
                              {"slack", "", "leave the thread's timer slack as it is"}});
  const int rounds = static_cast<int>(given.number("rounds", 300, 1, 1e6));
  const auto busy = static_cast<unsigned>(given.number("busy", 0, 0, 256));
  const auto how = given.has("slack") ? punctual::slack::as_is : punctual::slack::tight;
  struct turn {
    std::int64_t length;  // ns
    int times;
  };
  constexpr turn turns[] = {{100'000, 6}, {1'000'000, 6}, {4'000'000, 4}, {16'666'667, 3}};

  const char* const clock_source =
      "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const punctual::native_platform system;
  const bench::busy_threads load(busy);
  utsname machine{};
  ::uname(&machine);
  std::printf("# overshoots of native waits, %s slack, %u busy threads\n",
              how == punctual::slack::tight ? "smallest" : "the thread's own", busy);
  std::printf("# %s, %u cores, %s %s, clock source %s, %s\n", bench::cpu_info("model name").c_str(),
              std::thread::hardware_concurrency(), machine.sysname, machine.release,
              bench::first_line(clock_source).c_str(), bench::this_month().c_str());
  std::printf("# length_ns overshoot_ns\n");
  for (int round = 0; round < rounds; ++round) {
    for (const turn& each : turns) {
      for (int i = 0; i < each.times; ++i) {
        const instant until = system.now(clock_kind::monotonic) + nanoseconds{each.length};
        if (system.block_until(clock_kind::monotonic, until, how).how !=
            punctual::native_end::woke) {
          continue;
        }
        const nanoseconds overshoot = system.now(clock_kind::monotonic) - until;
        std::printf("%lld %lld\n", static_cast<long long>(each.length),
                    static_cast<long long>(overshoot.count()));
      }
    }
  }
}
