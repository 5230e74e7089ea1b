// A discrete-event simulation in real time, or many times faster: a bank with one counter.
//
// Events lie in a queue by the simulation's own time. Each is mapped to an instant and slept until;
// events that are late, and all that fall on the same instant, cost no more than one look at a
// clock, so that the queue catches up by itself. The simulation's clock never drifts: instants are
// computed, not added up.
//
//   event_simulator                         an hour of the bank in six seconds
//   event_simulator --speed 1 --seconds 60  one minute of it as it is
// smoke: --speed 10000 --seconds 3600
#include <punctual/sleep.hpp>
#include <punctual/statistics.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <random>
#include <string>
#include <vector>

using punctual::instant;
using punctual::nanoseconds;

namespace {

enum class kind : std::uint8_t { bus, arrival, served };

struct event {
  double at;  // seconds of the simulation
  kind what;
};
struct later_first {
  bool operator()(const event& a, const event& b) const { return a.at > b.at; }
};

/// Customers come one by one, and in groups of twelve by a bus every ten minutes; one is served at
/// a time.
class bank {
 public:
  bank() {
    plan(0, kind::arrival);
    plan(600, kind::bus);
  }

  bool empty() const { return queue_.empty(); }
  const event& next() const { return queue_.top(); }

  void happen() {
    const event e = queue_.top();
    queue_.pop();
    if (e.what == kind::bus) {
      for (int i = 0; i < 12; ++i) arrive(e.at);
      plan(e.at + 600, kind::bus);
    } else if (e.what == kind::arrival) {
      arrive(e.at);
      plan(e.at + between_arrivals_(random_), kind::arrival);
    } else {
      ++served_;
      waiting_.pop();
      if (!waiting_.empty()) serve(e.at);
    }
  }

  std::uint64_t served() const { return served_; }
  double longest_wait() const { return longest_wait_; }

 private:
  void plan(double at, kind what) { queue_.push({at, what}); }
  void arrive(double now) {
    waiting_.push(now);
    if (waiting_.size() == 1) serve(now);
  }
  void serve(double now) {
    longest_wait_ = std::max(longest_wait_, now - waiting_.front());
    plan(now + service_(random_), kind::served);
  }

  std::priority_queue<event, std::vector<event>, later_first> queue_;
  std::queue<double> waiting_;  // when they came; the first is being served
  std::mt19937 random_{12};
  std::exponential_distribution<double> between_arrivals_{1 / 30.0};
  std::exponential_distribution<double> service_{1 / 20.0};
  std::uint64_t served_ = 0;
  double longest_wait_ = 0;
};

}  // namespace

int main(int count, char** words) {
  double speed = 600;
  double seconds = 3600;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--speed") speed = std::atof(words[i + 1]);
    if (word == "--seconds") seconds = std::atof(words[i + 1]);
  }
  if (count % 2 == 0 || !(speed > 0) || !(seconds > 0)) {
    std::fprintf(stderr, "usage: event_simulator [--speed FACTOR] [--seconds OF_THE_SIMULATION]\n");
    return 2;
  }

  bank simulated;
  punctual::statistics late;
  std::uint64_t events = 0;
  std::uint64_t already_past = 0;
  nanoseconds spun{0};
  const instant start = punctual::steady::now();
  while (!simulated.empty() && simulated.next().at <= seconds) {
    const std::chrono::duration<double> since{simulated.next().at / speed};
    const instant due = punctual::later(start, punctual::to_nanoseconds(since));

    const punctual::receipt slept = punctual::sleep_until(due);
    late.record(punctual::steady::now() - due);
    already_past += slept.why == punctual::outcome::already_past;
    spun += slept.spun;

    simulated.happen();
    ++events;
  }
  const std::chrono::duration<double> took = punctual::steady::now() - start;

  std::printf(
      "%.0f s of the bank in %.3f s: %llu events, %llu of them already past; %llu customers, "
      "longest wait %.0f s\n",
      seconds, took.count(), static_cast<unsigned long long>(events),
      static_cast<unsigned long long>(already_past),
      static_cast<unsigned long long>(simulated.served()), simulated.longest_wait());
  std::printf("spun %s in all; events were late by\n%s", punctual::to_text(spun).c_str(),
              to_text(late).c_str());
  return 0;
}
