// A loop of 60 Hz that also serves a socket: beats with the pacer's precision, answers with poll's.
//
// `pacer.next(block)` blocks in ppoll, not in a sleep of its own. A message ends the wait as
// `woken`: the loop answers it and waits on for the same beat. The last microseconds before a beat
// are spun and belong to it; a message that comes then is answered right after the beat.
//
//   poll_loop                          five seconds without messages, five with 1000 a second
//   poll_loop 60 5000                  60 seconds each, 5000 messages a second
// smoke: 1
#include "blockers.hpp"

#include <punctual/interrupt.hpp>
#include <punctual/pacer.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <sys/socket.h>

using namespace std::chrono_literals;
using punctual::beat;
using punctual::instant;
using punctual::nanoseconds;
using punctual::steady;

namespace {

constexpr nanoseconds late = 50us;

/// The client: sends a message every now and then, and notes how long the answer takes.
class client {
 public:
  client(int socket, int messages_a_second, nanoseconds length)
      : thread_([this, socket, messages_a_second, length] {
          if (messages_a_second == 0) return;
          const instant end = steady::now() + length;
          punctual::pacer sends{punctual::hz(messages_a_second)};
          while (steady::now() < end && sends.next()) {
            const instant from = steady::now();
            char byte = 'x';
            if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1 || ::read(socket, &byte, 1) != 1)
              return;
            answers_.record(steady::now() - from);
          }
        }) {}

  const punctual::statistics& answers() {
    if (thread_.joinable()) thread_.join();
    return answers_;
  }

 private:
  punctual::statistics answers_;
  std::thread thread_;
};

// Answers what has come; a client that has gone away does not matter.
void serve(int socket) {
  std::array<char, 64> bytes{};
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) ::send(socket, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
}

double share_of_late_beats(int messages_a_second, nanoseconds length) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::_Exit(1);
  pollfd file{ends[0], POLLIN, 0};
  const blockers::ppoll_blocker block{&file, 1};
  client other(ends[1], messages_a_second, length);

  punctual::pacer frames{punctual::hz(60)};
  const instant end = steady::now() + length;
  std::uint64_t beats = 0;
  std::uint64_t late_ones = 0;
  while (steady::now() < end) {
    const beat b = frames.next(block);
    if (b) {
      ++beats;
      late_ones += b.late > late;
    }
    serve(ends[0]);  // after a beat, too: a loop that is always late must not starve its clients
  }
  ::shutdown(ends[0], SHUT_RDWR);
  const punctual::statistics& answers = other.answers();
  ::close(ends[0]);
  ::close(ends[1]);

  const double share = static_cast<double>(late_ones) / static_cast<double>(beats);
  std::printf("%5d messages/s: %llu beats, %.2f %% later than 50 us", messages_a_second,
              static_cast<unsigned long long>(beats), share * 100);
  if (answers.count() != 0) {
    const auto us = [&answers](double q) {
      return static_cast<double>(answers.quantile(q).count()) / 1e3;
    };
    std::printf("; %llu answers, median %.1f us, 99 %% within %.1f us",
                static_cast<unsigned long long>(answers.count()), us(0.5), us(0.99));
  }
  std::printf("\n");
  return share;
}

}  // namespace

int main(int count, char** words) {
  const int seconds = count > 1 ? std::atoi(words[1]) : 5;
  const int messages = count > 2 ? std::atoi(words[2]) : 1000;
  if (seconds < 1 || messages < 1) {
    std::fprintf(stderr, "usage: poll_loop [SECONDS [MESSAGES_A_SECOND]]\n");
    return 2;
  }
  const nanoseconds length = std::chrono::seconds{seconds};
  share_of_late_beats(0, length);
  share_of_late_beats(messages, length);
}
