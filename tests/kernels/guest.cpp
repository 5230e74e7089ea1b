// The program that runs inside a real kernel, one static file without a test framework. Its first
// word says what it does: `contract NAME` the promises and the figures; `probe NAME` raw wake-ups
// for the models; `suspend`, `step`, `slew` what only a machine of one's own can do to its clocks;
// `loop60` what a 60 Hz loop learns, with `--check` held to the kernel's ticks; `simh_clock` what a
// simulator gets (examples/simh, whose words follow). Ends with the number of broken promises.

#include "guest/contract.hpp"
#include "guest/disturbances.hpp"
#include "guest/figures.hpp"
#include "guest/loop60.hpp"
#include "guest/probe.hpp"

#include <string_view>

extern "C" int simh_clock(int count, char** words);

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string command = count > 1 ? words[1] : "";
  const std::string name = count > 2 ? words[2] : "";
  const int times = count > 3 && std::string(words[3]) == "--long" ? 20 : 1;
  guest::noisy = !name.starts_with("virtual");
  if (command == "contract") {
    guest::contract(name, times);
    guest::figures(times);
  } else if (command == "kernel") {
    guest::is_the_kernel_named(name);
  } else if (command == "probe") {
    guest::probe(name);
  } else if (command == "suspend") {
    guest::suspend();
  } else if (command == "step") {
    guest::step();
  } else if (command == "slew") {
    guest::slew();
  } else if (command == "loop60") {
    const bool judged = std::string_view(name) == "--check";
    guest::loop60(judged ? 9 : 20, judged);
  } else if (command == "simh_clock") {
    // User-mode Linux appends a word of its own to the command line.
    while (std::string_view(words[count - 1]).starts_with("root=")) --count;
    return simh_clock(count - 1, words + 1);
  } else {
    guest::check(false, "no command is called '%s'", command.c_str());
  }
  return std::min(guest::failures, 100);
}
