// Mistake that would live without it: a long wait that passes through a 32-bit parameter comes back
// at once; a value of a second or more is refused; a header that does not survive its neighbours.
// The replaced calls are held to the same in tests/preload; headers in tests/hygiene.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#include <punctual/punctual.h>
#undef min
#undef max

#include "support/catch.hpp"
#include "support/child.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace {

using wait_in_c = int (*)(std::int64_t, punctual_receipt*);
constexpr std::int64_t ms = 1'000'000;

/// Whether a child that waits is still waiting after 300 ms. They wait together, to save time.
std::vector<bool> still_waiting(const std::vector<std::pair<wait_in_c, std::int64_t>>& waits) {
  std::vector<pid_t> children;
  for (const auto& [wait, length] : waits) {
    children.push_back(support::start_child([wait = wait, length = length] {
      wait(length, nullptr);
      return 0;
    }));
  }
  punctual_block_for_ns(300 * ms, nullptr);
  std::vector<bool> answers;
  for (const pid_t child : children) {
    int status = 0;
    answers.push_back(::waitpid(child, &status, WNOHANG) == 0);
    ::kill(child, SIGKILL);
    if (answers.back()) ::waitpid(child, &status, 0);
  }
  return answers;
}

}  // namespace

TEST_CASE("b55: lengths beyond 32 bits are waited for, in every unit of the C face",
          "[cases][b55][c_face][G5]") {
  constexpr std::int64_t two_31 = std::int64_t{1} << 31, two_32 = std::int64_t{1} << 32;
  std::vector<std::pair<wait_in_c, std::int64_t>> waits;
  for (const wait_in_c wait : {punctual_sleep_for_ms, punctual_sleep_for_us}) {
    for (const std::int64_t length : {two_31, two_32, two_32 + 1000})
      waits.push_back({wait, length});
  }
  for (const wait_in_c wait : {punctual_sleep_for_ns, punctual_block_for_ns}) {
    for (const std::int64_t length : {two_31, two_32, two_32 + 1000})
      waits.push_back({wait, length});
  }
  const std::vector<bool> answers = still_waiting(waits);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    INFO("length " << waits[i].second << " of wait " << i);
    CHECK(answers[i]);
  }
}

TEST_CASE("b55: a second and more of microseconds is slept, not refused", "[cases][b55][c_face]") {
  for (const std::int64_t us : {1'000'000, 1'500'000}) {
    const std::int64_t from = punctual_now_ns();
    CHECK(punctual_sleep_for_us(us, nullptr) == PUNCTUAL_REACHED);
    CHECK(punctual_now_ns() - from >= us * 1000);
  }
}

TEST_CASE("b55: minus one of any type is a length, not a surprise", "[cases][b55][c_face][G5]") {
  for (const wait_in_c wait :
       {punctual_sleep_for_ns, punctual_sleep_for_us, punctual_sleep_for_ms}) {
    CHECK(wait(-1, nullptr) == PUNCTUAL_ALREADY_PAST);
    CHECK(wait(std::int64_t{std::numeric_limits<std::int32_t>::min()}, nullptr) ==
          PUNCTUAL_ALREADY_PAST);
  }
  // An unsigned minus one is a long time: 4.3 s of nanoseconds, 71 minutes of microseconds.
  constexpr std::int64_t unsigned_minus_one = std::numeric_limits<std::uint32_t>::max();
  const std::vector<bool> answers = still_waiting({{punctual_sleep_for_ns, unsigned_minus_one},
                                                   {punctual_sleep_for_us, unsigned_minus_one},
                                                   {punctual_sleep_for_ms, unsigned_minus_one}});
  for (const bool waiting : answers) CHECK(waiting);
  punctual_pacer* pacer = nullptr;
  CHECK(punctual_pacer_create(60, 1, PUNCTUAL_BURST, static_cast<std::uint32_t>(-1), nullptr,
                              &pacer) == PUNCTUAL_OK);
  CHECK(punctual_pacer_next(pacer, nullptr, nullptr) == PUNCTUAL_ALREADY_PAST);
  punctual_pacer_destroy(pacer);
}
