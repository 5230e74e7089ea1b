// A frame loop, tried on machines that you do not have: NetBSD, Windows at 15.6 ms, macOS.
//
//   test_your_loop                  ten simulated seconds on each of a few machines, and a bad loop
//   test_your_loop --all            on every machine that there is
//   test_your_loop "openbsd" ...    on these
//   test_your_loop --drift          with a loop as it should not be written: exit status 1
//
// Copy it into your unit tests and put your own loop in the place of `run_frames`. The run repeats
// exactly. A machine of your own is a line: sim::install(world, sim::kernels::netbsd{.hz = 250}).
// Exit status 0: the loop keeps its rate on every machine; 1: it drifts; 2: no such machine.
#include <punctual/sleeper.hpp>
#include <punctual/testing/kernels.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
namespace sim = punctual::testing;

namespace {

constexpr int rate = 60;
constexpr int frames = 600;

/// The loop under test: yours. What it needs of the machine is a parameter, so that the program can
/// hand it the real machine and a test another one.
template <class Machine>
void run_frames(Machine& machine) {
  const auto start = machine.now();
  for (int frame = 1; frame <= frames; ++frame) {
    machine.draw(frame);
    machine.sleep_until(start + frame * punctual::nanoseconds(1s) / rate);
  }
}

/// A loop that counts from its last wake-up: whatever a wake-up is late, each later frame is, too.
template <class Machine>
void run_frames_and_drift(Machine& machine) {
  for (int frame = 1; frame <= frames; ++frame) {
    const auto began = machine.now();
    machine.draw(frame);
    machine.plain_sleep_until(began + punctual::nanoseconds(1s) / rate);
  }
}

/// The machine as the loop sees it. The program's own would call punctual::steady::now() and
/// punctual::sleep_until().
class simulated_machine {
 public:
  explicit simulated_machine(const sim::kernels::ready_made& kernel) { kernel.install(world_, 1); }

  punctual::instant now() { return platform_.now(punctual::clock_kind::monotonic); }
  void sleep_until(punctual::instant t) {
    sleeper_.sleep_until(t);
    note(t);
  }
  void plain_sleep_until(punctual::instant t) {
    sleeper_.block_until(t);
    note(t);
  }

  /// Work: 3 to 9 ms a frame.
  void draw(int frame) { world_.work(3ms + frame * 1us * 6871 % 6ms); }

  punctual::instant time() const { return world_.time(); }
  punctual::nanoseconds latest() const { return latest_; }
  double spinning() const {
    return static_cast<double>(world_.count.spun().count()) /
           static_cast<double>((world_.time() - start_).count());
  }

 private:
  void note(punctual::instant deadline) {
    if (world_.time() - deadline > latest_) latest_ = world_.time() - deadline;
  }

  sim::simulation world_;
  sim::simulated_platform platform_{world_};
  punctual::basic_sleeper<sim::simulated_platform> sleeper_{{}, platform_};
  punctual::instant start_ = world_.time();
  punctual::nanoseconds latest_{0};
};

/// Whether ten seconds of the loop took ten seconds, give or take a frame, by true time.
bool keeps_its_rate(const sim::kernels::ready_made& kernel, bool drift) {
  simulated_machine machine(kernel);
  const auto start = machine.time();
  drift ? run_frames_and_drift(machine) : run_frames(machine);
  const punctual::nanoseconds off =
      machine.time() - start - punctual::nanoseconds(1s) * frames / rate;
  const bool good = abs(off) < punctual::nanoseconds(1s) / rate;
  std::printf("%-40.*s off by %10.3f ms, latest frame %8.3f ms, spinning %4.1f %%  %s\n",
              static_cast<int>(kernel.name.size()), kernel.name.data(),
              static_cast<double>(off.count()) / 1e6,
              static_cast<double>(machine.latest().count()) / 1e6, 100 * machine.spinning(),
              good ? "ok" : "DRIFTS");
  return good;
}

}  // namespace

int main(int count, char** words) try {
  bool drift = false;
  std::vector<sim::kernels::ready_made> machines;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--drift") {
      drift = true;
    } else if (word == "--all") {
      machines = sim::kernels::all();
    } else {
      machines.push_back(sim::kernels::named(word));
    }
  }
  bool good = true;
  if (machines.empty()) {
    for (const char* each :
         {"linux", "netbsd, 100 Hz", "freebsd 14", "windows, 15.625 ms", "macos"}) {
      good = keeps_its_rate(sim::kernels::named(each), drift) && good;
    }
    std::puts("a loop that counts from its last wake-up must be found out:");
    good = !keeps_its_rate(sim::kernels::named("linux"), true) && good;
  }
  for (const auto& each : machines) good = keeps_its_rate(each, drift) && good;
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
