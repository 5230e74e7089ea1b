// Mistake that would live without it: a C function that crashes on NULL, writes beyond the
// structure that an older program handed over, waits in the wrong unit, loses an exception, or
// answers otherwise than the C++ face does.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/comma_locale.hpp"
#include "support/json.hpp"
#include "support/seccomp.hpp"
#include "support/skip.hpp"

#include <punctual/c/punctual.ipp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

punctual_receipt fresh() { return PUNCTUAL_RECEIPT_INIT; }

/// A handle that goes away with its scope.
template <class T, void (*Destroy)(T*)>
struct owned {
  T* it = nullptr;
  owned() = default;
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() { Destroy(it); }
};
using owned_sleeper = owned<punctual_sleeper, punctual_sleeper_destroy>;
using owned_waker = owned<punctual_waker, punctual_waker_destroy>;
using owned_pacer = owned<punctual_pacer, punctual_pacer_destroy>;
using owned_statistics = owned<punctual_statistics, punctual_statistics_destroy>;

std::string text_of(const std::function<std::int64_t(char*, std::size_t)>& write) {
  const std::int64_t length = write(nullptr, 0);
  REQUIRE(length >= 0);
  std::string text(static_cast<std::size_t>(length) + 1, '?');
  REQUIRE(write(text.data(), text.size()) == length);
  REQUIRE(text.back() == '\0');
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("every plain wait of the C face reaches its deadline, never before it", "[c_face][G1]") {
  struct one_way {
    const char* name;
    int (*until)(std::int64_t, punctual_receipt*);
    bool blocks, spins;
  };
  for (const one_way& way : {one_way{"sleep", punctual_sleep_until_ns, true, true},
                             one_way{"block", punctual_block_until_ns, true, false},
                             one_way{"spin", punctual_spin_until_ns, false, true}}) {
    INFO(way.name);
    std::uint32_t blocked = 0;
    for (int i = 0; i < 20; ++i) {
      punctual_receipt r = fresh();
      const std::int64_t due = punctual_now_ns() + 2 * ms;
      const int why = way.until(due, &r);
      const std::int64_t back = punctual_now_ns();
      CHECK(why == PUNCTUAL_REACHED);
      CHECK(r.why == why);
      CHECK(back >= due);
      CHECK(r.late_ns >= 0);
      CHECK(r.late_ns <= back - due);
      blocked += r.native_waits;
      if (!way.spins) CHECK(r.spun_ns == 0);
      CHECK(r.left_ns == 0);
      CHECK(r.error == 0);
    }
    CHECK((blocked > 0) == way.blocks);
  }
}

TEST_CASE("lengths in every unit of the C face are waited out", "[c_face][G1]") {
  struct one_unit {
    const char* name;
    int (*wait)(std::int64_t, punctual_receipt*);
    std::int64_t count, ns;
  };
  for (const one_unit& unit : {one_unit{"ns", punctual_sleep_for_ns, 1'500'001, 1'500'001},
                               one_unit{"us", punctual_sleep_for_us, 1'501, 1'501 * us},
                               one_unit{"ms", punctual_sleep_for_ms, 2, 2 * ms},
                               one_unit{"block", punctual_block_for_ns, ms, ms},
                               one_unit{"spin", punctual_spin_for_ns, 100 * us, 100 * us}}) {
    INFO(unit.name);
    const std::int64_t from = punctual_now_ns();
    CHECK(unit.wait(unit.count, nullptr) == PUNCTUAL_REACHED);
    CHECK(punctual_now_ns() - from >= unit.ns);
  }
}

TEST_CASE("the wall clock's waits of the C face follow the wall clock", "[c_face][G1]") {
  for (const auto wait : {punctual_sleep_until_wall_ns, punctual_block_until_wall_ns}) {
    const std::int64_t due = punctual_wall_now_ns() + 2 * ms;
    punctual_receipt r = fresh();
    CHECK(wait(due, &r) == PUNCTUAL_REACHED);
    CHECK(punctual_wall_now_ns() >= due);
    CHECK(r.native_waits > 0);
    CHECK(wait(punctual_wall_now_ns() - ms, &r) == PUNCTUAL_ALREADY_PAST);
  }
}

TEST_CASE("zero, negative and past values return at once from C, with no system call",
          "[c_face][unsanitized][G2][G5]") {
  const int code = support::in_child([] {
    punctual_receipt r = fresh();
    punctual_waker* waker = nullptr;
    punctual_pacer* pacer = nullptr;
    punctual_beat beat = PUNCTUAL_BEAT_INIT;
    if (punctual_waker_create(&waker) != PUNCTUAL_OK) return 2;
    if (punctual_pacer_create(1'000'000'000, 1, PUNCTUAL_SKIP, 0, nullptr, &pacer) != PUNCTUAL_OK) {
      return 2;
    }
    punctual_sleep_for_ns(ms, nullptr);  // the first wait of a thread may do more
    punctual_pacer_next(pacer, &beat, &r);
    if (!support::die_of_calls_except({SYS_exit_group, SYS_write})) return 77;
    int wrong = 0;
    for (const std::int64_t past : {least, std::int64_t{-1}, std::int64_t{0}}) {
      wrong += punctual_sleep_until_ns(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_block_until_ns(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_spin_until_ns(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_for_ns(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_for_us(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_for_ms(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_until_wall_ns(past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_until_or_woken_ns(waker, past, &r) != PUNCTUAL_ALREADY_PAST;
      wrong += punctual_sleep_for_or_woken_ns(waker, past, &r) != PUNCTUAL_ALREADY_PAST;
    }
    punctual_waker_wake(waker);  // pending and ahead, pending and past
    wrong += punctual_sleep_until_or_woken_ns(waker, most, &r) != PUNCTUAL_WOKEN;
    wrong += punctual_sleep_until_or_woken_ns(waker, 0, &r) != PUNCTUAL_WOKEN;
    wrong += punctual_pacer_next(pacer, &beat, &r) != PUNCTUAL_ALREADY_PAST;
    return wrong == 0 ? 0 : 1;
  });
  if (code == 77) return support::skip("no system-call filter may be installed here");
  CHECK(code == 0);
}

TEST_CASE("for ever is for ever from C, in every unit", "[c_face][G5]") {
  owned_waker waker;
  REQUIRE(punctual_waker_create(&waker.it) == PUNCTUAL_OK);
  for (const bool for_length : {false, true}) {
    std::thread other([&] {
      punctual_sleep_for_ms(150, nullptr);
      punctual_waker_wake(waker.it);
    });
    punctual_receipt r = fresh();
    const std::int64_t from = punctual_now_ns();
    const int why = for_length ? punctual_sleep_for_or_woken_ns(waker.it, most, &r)
                               : punctual_block_until_or_woken_ns(waker.it, most, &r);
    other.join();
    CHECK(why == PUNCTUAL_WOKEN);
    CHECK(punctual_now_ns() - from >= 140 * ms);
    CHECK(r.left_ns > 0);
    punctual_waker_reset(waker.it);
  }
  // Where the unit is wider than the range: the conversion saturates, and the process just ends.
  for (const auto wait : {punctual_sleep_for_us, punctual_sleep_for_ms}) {
    for (const std::int64_t length : {most, std::int64_t{1} << 62, most / 1000 + 1}) {
      const pid_t child = support::start_child([=] {
        wait(length, nullptr);
        return 1;
      });
      punctual_sleep_for_ms(60, nullptr);
      CHECK(::kill(child, SIGKILL) == 0);
      CHECK(support::wait_for(child) == -SIGKILL);
    }
  }
}

TEST_CASE("NULL and bad arguments are answered, and nothing is waited for", "[c_face][G5]") {
  const std::int64_t from = punctual_now_ns();
  constexpr int bad = PUNCTUAL_BAD_ARGUMENT;
  punctual_receipt none{};  // its size was never set
  const std::int64_t late = from + 10'000 * ms;
  CHECK(punctual_sleep_until_ns(late, &none) == bad);
  CHECK(punctual_block_until_ns(late, &none) == bad);
  CHECK(punctual_spin_until_ns(late, &none) == bad);
  CHECK(punctual_sleep_for_ms(10'000, &none) == bad);
  CHECK(punctual_sleep_until_by_ns(late, nullptr, nullptr, nullptr) == bad);

  CHECK(punctual_sleeper_create(nullptr, nullptr) == bad);
  CHECK(punctual_sleeper_sleep_until_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_sleeper_sleep_for_ns(nullptr, 10'000 * ms, nullptr) == bad);
  CHECK(punctual_sleeper_block_until_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_sleeper_spin_until_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_sleeper_calibrate_ns(nullptr, ms) == bad);
  CHECK(punctual_sleeper_reset(nullptr) == bad);
  CHECK(punctual_sleeper_margin_ns(nullptr, ms) == bad);
  CHECK(punctual_sleeper_handover_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_sleeper_observe_ns(nullptr, late, late) == bad);
  CHECK(punctual_sleeper_text(nullptr, nullptr, 0) == bad);
  punctual_sleeper_destroy(nullptr);

  CHECK(punctual_waker_create(nullptr) == bad);
  CHECK(punctual_waker_wake(nullptr) == bad);
  CHECK(punctual_waker_reset(nullptr) == bad);
  CHECK(punctual_waker_pending(nullptr) == bad);
  CHECK(punctual_sleep_until_or_woken_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_sleep_for_or_woken_ns(nullptr, 10'000 * ms, nullptr) == bad);
  CHECK(punctual_block_until_or_woken_ns(nullptr, late, nullptr) == bad);
  CHECK(punctual_block_for_or_woken_ns(nullptr, 10'000 * ms, nullptr) == bad);
  punctual_waker_destroy(nullptr);

  punctual_pacer* pacer = nullptr;
  CHECK(punctual_pacer_create(60, 1, PUNCTUAL_SKIP, 3, nullptr, nullptr) == bad);
  for (const auto& [num, den] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                 {1, 0},
                                 {-60, 1},
                                 {60, -1},
                                 {least, 1},
                                 {most, 1},
                                 {1, most}}) {
    CHECK(punctual_pacer_create(num, den, PUNCTUAL_SKIP, 3, nullptr, &pacer) == bad);
  }
  for (const int policy : {-1, 3, std::numeric_limits<int>::max()}) {
    CHECK(punctual_pacer_create(60, 1, policy, 3, nullptr, &pacer) == bad);
  }
  punctual_tuning no_size{};
  CHECK(punctual_pacer_create(60, 1, PUNCTUAL_SKIP, 3, &no_size, &pacer) == bad);
  CHECK(punctual_sleeper_create(&no_size, nullptr) == bad);
  CHECK(punctual_set_default_tuning(&no_size) == bad);
  CHECK(punctual_default_tuning(nullptr) == bad);
  CHECK(pacer == nullptr);
  CHECK(punctual_pacer_next(nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_next_or_woken(nullptr, nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_poll(nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_set_rate(nullptr, 60, 1) == bad);
  CHECK(punctual_pacer_set_background(nullptr, 5, 1) == bad);
  CHECK(punctual_pacer_set_unlimited(nullptr) == bad);
  CHECK(punctual_pacer_nudge_ns(nullptr, 1) == bad);
  CHECK(punctual_pacer_stop(nullptr) == bad);
  CHECK(punctual_pacer_restart(nullptr) == bad);
  CHECK(punctual_pacer_pause(nullptr) == bad);
  CHECK(punctual_pacer_resume(nullptr) == bad);
  CHECK(punctual_pacer_align_ns(nullptr, 0) == bad);
  CHECK(punctual_pacer_align_wall_ns(nullptr, 0) == bad);
  CHECK(punctual_pacer_calibrate_ns(nullptr, ms) == bad);
  CHECK(punctual_pacer_deadline_ns(nullptr, nullptr) == bad);
  CHECK(punctual_pacer_rate(nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_achieved(nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_text(nullptr, nullptr, 0) == bad);
  punctual_pacer_destroy(nullptr);

  CHECK(punctual_statistics_create(nullptr) == bad);
  CHECK(punctual_statistics_record_ns(nullptr, 1) == bad);
  CHECK(punctual_statistics_merge(nullptr, nullptr) == bad);
  CHECK(punctual_statistics_merge_lateness(nullptr, nullptr) == bad);
  CHECK(punctual_statistics_merge_busy(nullptr, nullptr) == bad);
  CHECK(punctual_statistics_reset(nullptr) == bad);
  CHECK(punctual_statistics_count(nullptr) == 0);
  CHECK(punctual_statistics_mean_ns(nullptr, nullptr) == bad);
  CHECK(punctual_statistics_quantile_ns(nullptr, 0.5, nullptr) == bad);
  CHECK(punctual_statistics_text(nullptr, nullptr, 0) == bad);
  CHECK(punctual_statistics_json(nullptr, nullptr, 0) == bad);
  punctual_statistics_destroy(nullptr);

  punctual_calibration unsized{};
  CHECK(punctual_calibrate_ns(ms, &unsized) == bad);
  CHECK(punctual_current_calibration(&unsized) == bad);
  CHECK(punctual_current_calibration(nullptr) == bad);
  CHECK(punctual_calibration_text(nullptr, 1) == bad);
  CHECK(punctual_calibration_json(nullptr, 1) == bad);
  CHECK(punctual_now_ns() - from < 5'000 * ms);
}

TEST_CASE("a handle that exists refuses what is wrong beside it", "[c_face][G5]") {
  constexpr int bad = PUNCTUAL_BAD_ARGUMENT;
  owned_pacer pacer;
  owned_waker waker;
  owned_sleeper sleeper;
  owned_statistics all;
  REQUIRE(punctual_pacer_create(60, 1, PUNCTUAL_SKIP, 0, nullptr, &pacer.it) == PUNCTUAL_OK);
  REQUIRE(punctual_waker_create(&waker.it) == PUNCTUAL_OK);
  REQUIRE(punctual_sleeper_create(nullptr, &sleeper.it) == PUNCTUAL_OK);
  REQUIRE(punctual_statistics_create(&all.it) == PUNCTUAL_OK);
  punctual_beat no_beat{};
  punctual_receipt no_receipt{};
  CHECK(punctual_pacer_next(pacer.it, &no_beat, nullptr) == bad);
  CHECK(punctual_pacer_next(pacer.it, nullptr, &no_receipt) == bad);
  CHECK(punctual_pacer_next_or_woken(pacer.it, nullptr, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_next_or_woken(nullptr, waker.it, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_set_rate(pacer.it, 0, 1) == bad);
  CHECK(punctual_pacer_set_background(pacer.it, 60, 0) == bad);
  CHECK(punctual_pacer_deadline_ns(pacer.it, nullptr) == bad);
  CHECK(punctual_pacer_rate(pacer.it, nullptr, nullptr) == bad);
  CHECK(punctual_pacer_text(pacer.it, nullptr, 5) == bad);
  CHECK(punctual_sleeper_handover_ns(sleeper.it, 0, nullptr) == bad);
  CHECK(punctual_statistics_merge(all.it, nullptr) == bad);
  CHECK(punctual_statistics_mean_ns(all.it, nullptr) == bad);
  // None of it has used up the first beat.
  punctual_beat beat = PUNCTUAL_BEAT_INIT;
  CHECK(punctual_pacer_next(pacer.it, &beat, nullptr) == PUNCTUAL_ALREADY_PAST);
  CHECK(beat.index == 0);
}

TEST_CASE("a structure may be shorter or longer than this library's", "[c_face]") {
  // A newer program's, longer: the rest is zero. Its size stays what the program says.
  struct newer {
    punctual_receipt known;
    std::int64_t of_tomorrow;
    unsigned char canary;
  } longer{};
  longer.known.size = offsetof(newer, canary);
  longer.of_tomorrow = 7;
  longer.canary = 0x5a;
  CHECK(punctual_block_for_ns(ms, &longer.known) == PUNCTUAL_REACHED);
  CHECK(longer.known.native_waits > 0);
  CHECK(longer.known.size == offsetof(newer, canary));
  CHECK(longer.of_tomorrow == 0);
  CHECK(longer.canary == 0x5a);

  // The oldest program's ends with its last field: nothing is written behind it.
  constexpr std::size_t oldest = offsetof(punctual_receipt, gaps) + sizeof(std::uint32_t);
  std::array<unsigned char, sizeof(punctual_receipt) + 8> bytes;
  bytes.fill(0x5a);
  punctual_receipt& shorter = *reinterpret_cast<punctual_receipt*>(bytes.data());
  shorter.size = oldest;
  CHECK(punctual_block_for_ns(ms, &shorter) == PUNCTUAL_REACHED);
  CHECK(shorter.native_waits > 0);
  for (std::size_t i = oldest; i < bytes.size(); ++i) CHECK(bytes[i] == 0x5a);

  shorter.size = oldest - 1;
  CHECK(punctual_block_for_ns(ms, &shorter) == PUNCTUAL_BAD_ARGUMENT);
}

TEST_CASE("the C face's names and numbers are the C++ face's", "[c_face]") {
  using punctual::missed;
  using punctual::outcome;
  CHECK(PUNCTUAL_REACHED == static_cast<int>(outcome::reached));
  CHECK(PUNCTUAL_ALREADY_PAST == static_cast<int>(outcome::already_past));
  CHECK(PUNCTUAL_WOKEN == static_cast<int>(outcome::woken));
  CHECK(PUNCTUAL_STOPPED == static_cast<int>(outcome::stopped));
  CHECK(PUNCTUAL_GAVE_UP == static_cast<int>(outcome::gave_up));
  CHECK(PUNCTUAL_SKIP == static_cast<int>(missed::skip));
  CHECK(PUNCTUAL_BURST == static_cast<int>(missed::burst));
  CHECK(PUNCTUAL_REPHASE == static_cast<int>(missed::rephase));
  std::vector<std::string> names;
  for (int each = PUNCTUAL_NO_MEMORY; each <= PUNCTUAL_GAVE_UP; ++each) {
    names.emplace_back(punctual_name(each));
  }
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());
  CHECK(std::string(punctual_name(99)) == "unknown");
  CHECK(punctual_version() ==
        PUNCTUAL_VERSION_MAJOR * 1000000 + PUNCTUAL_VERSION_MINOR * 1000 + PUNCTUAL_VERSION_PATCH);
}

TEST_CASE("a receipt from C has every figure of the C++ receipt in its own place", "[c_face]") {
  punctual::receipt did;
  did.why = punctual::outcome::gave_up;
  did.late = punctual::nanoseconds{1};
  did.left = punctual::nanoseconds{2};
  did.blocked = punctual::nanoseconds{3};
  did.spun = punctual::nanoseconds{4};
  did.overshoot = punctual::nanoseconds{-5};
  did.native_waits = 6;
  did.interruptions = 7;
  did.gaps = 8;
  did.error = 9;
  punctual_receipt r = fresh();
  punctual::c_face::give(did, &r);
  CHECK(r.size == sizeof r);
  CHECK(r.why == PUNCTUAL_GAVE_UP);
  CHECK((r.late_ns == 1 && r.left_ns == 2 && r.blocked_ns == 3 && r.spun_ns == 4));
  CHECK((r.overshoot_ns == -5 && r.native_waits == 6 && r.interruptions == 7 && r.gaps == 8));
  CHECK(r.error == 9);
}

TEST_CASE("a caller's own blocking call in C is asked, believed, and may end the wait",
          "[c_face]") {
  struct loop {
    int calls = 0;
    int event_at = 0;
    std::int64_t deadline = 0;
    bool beyond = false;
  } mine;
  const punctual_blocking_call block = [](void* context, std::int64_t handover) -> int {
    loop& l = *static_cast<loop*>(context);
    l.beyond = l.beyond || handover > l.deadline;
    if (++l.calls == l.event_at) return 1;
    punctual_block_until_ns(handover, nullptr);
    return 0;
  };
  punctual_receipt r = fresh();
  mine.deadline = punctual_now_ns() + 5 * ms;
  CHECK(punctual_sleep_until_by_ns(mine.deadline, block, &mine, &r) == PUNCTUAL_REACHED);
  CHECK(punctual_now_ns() >= mine.deadline);
  CHECK(mine.calls > 0);
  CHECK_FALSE(mine.beyond);
  mine = {0, 1, punctual_now_ns() + 5'000 * ms, false};
  CHECK(punctual_sleep_until_by_ns(mine.deadline, block, &mine, &r) == PUNCTUAL_WOKEN);
  CHECK(r.left_ns > 4'000 * ms);
}

TEST_CASE("an exception of a caller's blocking call passes through the C face", "[c_face]") {
  const punctual_blocking_call block = [](void*, std::int64_t) -> int { throw 7; };
  CHECK_THROWS_AS(punctual_sleep_until_by_ns(punctual_now_ns() + 50 * ms, block, nullptr, nullptr),
                  int);
  // and the thread's sleeper goes on learning
  punctual_receipt r = fresh();
  CHECK(punctual_sleep_for_ns(ms, &r) == PUNCTUAL_REACHED);
}

TEST_CASE("a sleeper of its own obeys its own tuning", "[c_face]") {
  punctual_tuning how{};
  REQUIRE(punctual_default_tuning(&how) == PUNCTUAL_OK);
  CHECK(how.size == sizeof how);
  const punctual::tuning defaults;
  CHECK(how.punctuality == defaults.punctuality);
  CHECK(how.cpu_budget == defaults.cpu_budget);
  CHECK(how.max_margin_ns == defaults.max_margin.count());
  CHECK((how.use_counter == 1 && how.tighten_slack == 1));
  how.max_margin_ns = 0;
  how.use_counter = 0;
  how.tighten_slack = 0;
  owned_sleeper sleeper;
  REQUIRE(punctual_sleeper_create(&how, &sleeper.it) == PUNCTUAL_OK);
  CHECK(punctual_sleeper_calibrate_ns(sleeper.it, 5 * ms) == PUNCTUAL_OK);
  CHECK(punctual_sleeper_margin_ns(sleeper.it, 5 * ms) == 0);
  const std::string why =
      text_of([&](char* b, std::size_t n) { return punctual_sleeper_text(sleeper.it, b, n); });
  CHECK(why.find("slack as it is") != std::string::npos);
  CHECK(why.find("tuning::use_counter is false") != std::string::npos);
  CHECK(punctual_sleeper_reset(sleeper.it) == PUNCTUAL_OK);

  owned_sleeper plain;
  REQUIRE(punctual_sleeper_create(nullptr, &plain.it) == PUNCTUAL_OK);
  for (int i = 0; i < 20; ++i) {
    punctual_receipt r = fresh();
    const std::int64_t due = punctual_now_ns() + 20 * ms;
    CHECK(punctual_sleeper_sleep_until_ns(plain.it, due, &r) == PUNCTUAL_REACHED);
    CHECK(punctual_now_ns() >= due);
    CHECK(punctual_sleeper_sleep_for_ns(plain.it, 20 * ms, nullptr) == PUNCTUAL_REACHED);
  }
  CHECK(punctual_sleeper_block_until_ns(plain.it, punctual_now_ns() + 20 * ms, nullptr) ==
        PUNCTUAL_REACHED);
  CHECK(punctual_sleeper_spin_until_ns(plain.it, punctual_now_ns() + 20 * ms, nullptr) ==
        PUNCTUAL_REACHED);
  CHECK(punctual_sleeper_margin_ns(plain.it, ms) > 0);
  CHECK(punctual_margin_ns(ms) > 0);

  std::int64_t handover = 0;
  const std::int64_t due = punctual_now_ns() + 5 * ms;
  CHECK(punctual_sleeper_handover_ns(plain.it, due, &handover) == PUNCTUAL_OK);
  CHECK(handover <= due);
  punctual_block_until_ns(handover, nullptr);
  CHECK(punctual_sleeper_observe_ns(plain.it, handover, punctual_now_ns()) == PUNCTUAL_OK);
}

TEST_CASE("the default tuning set from C is the one that C++ uses, too", "[c_face]") {
  punctual_tuning how{};
  punctual_default_tuning(&how);
  how.max_margin_ns = 123'456;
  CHECK(punctual_set_default_tuning(&how) == PUNCTUAL_OK);
  CHECK(punctual::this_thread_sleeper().how().max_margin == punctual::nanoseconds{123'456});
  CHECK(punctual_set_default_tuning(nullptr) == PUNCTUAL_OK);
  CHECK(punctual::this_thread_sleeper().how().max_margin == punctual::tuning{}.max_margin);
}

TEST_CASE("a waker of the C face ends waits from other threads, and stays pending",
          "[c_face][threads][G9]") {
  owned_waker waker;
  REQUIRE(punctual_waker_create(&waker.it) == PUNCTUAL_OK);
  CHECK(punctual_waker_pending(waker.it) == 0);
  for (const bool spins : {true, false}) {
    std::atomic<bool> begun{false};
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      punctual_sleep_for_ms(5, nullptr);
      punctual_waker_wake(waker.it);
    });
    punctual_receipt r = fresh();
    begun = true;
    const int why = spins ? punctual_sleep_for_or_woken_ns(waker.it, 10'000 * ms, &r)
                          : punctual_block_for_or_woken_ns(waker.it, 10'000 * ms, &r);
    CHECK(why == PUNCTUAL_WOKEN);
    CHECK(r.left_ns > 5'000 * ms);
    other.join();
    CHECK(punctual_waker_pending(waker.it) == 1);
    CHECK(punctual_sleep_until_or_woken_ns(waker.it, punctual_now_ns() + ms, nullptr) ==
          PUNCTUAL_WOKEN);
    CHECK(punctual_waker_reset(waker.it) == PUNCTUAL_OK);
    CHECK(punctual_waker_pending(waker.it) == 0);
    const std::int64_t due = punctual_now_ns() + ms;
    CHECK(punctual_sleep_until_or_woken_ns(waker.it, due, nullptr) == PUNCTUAL_REACHED);
    CHECK(punctual_now_ns() >= due);
  }
  CHECK(punctual_waker_signal_safe() == (punctual::waker::signal_safe ? 1 : 0));
}

TEST_CASE("a pacer of the C face keeps its rate, says what it dropped, and takes orders",
          "[c_face]") {
  owned_pacer pacer;
  REQUIRE(punctual_pacer_create(2000, 2, PUNCTUAL_SKIP, 0, nullptr, &pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_pacer_calibrate_ns(pacer.it, 5 * ms) == PUNCTUAL_OK);
  punctual_beat beat = PUNCTUAL_BEAT_INIT;
  punctual_receipt r = fresh();
  std::int64_t due = 0;
  CHECK(punctual_pacer_deadline_ns(pacer.it, &due) == PUNCTUAL_OK);
  CHECK(due == least);
  CHECK(punctual_pacer_next(pacer.it, &beat, &r) == PUNCTUAL_ALREADY_PAST);
  CHECK((beat.index == 0 && beat.delivered == 1 && beat.steps == 1));
  const std::int64_t anchor = beat.due_ns;
  std::uint64_t skipped = 0;
  for (int i = 0; i < 20; ++i) {
    const int why = punctual_pacer_next(pacer.it, &beat, &r);
    const std::int64_t now = punctual_now_ns();
    CHECK((why == PUNCTUAL_REACHED || why == PUNCTUAL_ALREADY_PAST));
    CHECK(beat.why == why);
    CHECK(now >= beat.due_ns);
    CHECK(beat.late_ns <= now - beat.due_ns);
    CHECK(beat.due_ns == anchor + static_cast<std::int64_t>(beat.index) * ms);
    CHECK(beat.steps == beat.skipped + 1);
    skipped += beat.skipped;
  }
  punctual_block_for_ns(5 * ms, nullptr);
  punctual_pacer_next(pacer.it, &beat, &r);
  CHECK(beat.skipped >= 4);
  CHECK(beat.busy_ns >= 5 * ms);
  skipped += beat.skipped;
  double hertz = 0;
  std::uint64_t dropped = 0;
  CHECK(punctual_pacer_achieved(pacer.it, &hertz, &dropped) == PUNCTUAL_OK);
  CHECK(dropped == skipped);
  CHECK(hertz > 0);
  CHECK(punctual_pacer_achieved(pacer.it, nullptr, nullptr) == PUNCTUAL_OK);

  owned_statistics late, busy;
  REQUIRE(punctual_statistics_create(&late.it) == PUNCTUAL_OK);
  REQUIRE(punctual_statistics_create(&busy.it) == PUNCTUAL_OK);
  CHECK(punctual_statistics_merge_lateness(late.it, pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_statistics_merge_busy(busy.it, pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_statistics_count(late.it) == 21);
  std::int64_t longest = 0;
  CHECK(punctual_statistics_quantile_ns(busy.it, 1, &longest) == PUNCTUAL_OK);
  CHECK(longest == beat.busy_ns);

  std::int64_t num = 0, den = 0;
  CHECK(punctual_pacer_rate(pacer.it, &num, &den) == PUNCTUAL_OK);
  CHECK((num == 1000 && den == 1));
  CHECK(punctual_pacer_set_rate(pacer.it, 60000, 1001) == PUNCTUAL_OK);
  CHECK(punctual_pacer_rate(pacer.it, &num, &den) == PUNCTUAL_OK);
  CHECK((num == 60000 && den == 1001));
  CHECK(punctual_pacer_set_unlimited(pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_pacer_rate(pacer.it, &num, &den) == PUNCTUAL_OK);
  CHECK((num == 1 && den == 0));
  CHECK(punctual_pacer_set_background(pacer.it, 500, 1) == PUNCTUAL_OK);
  punctual_pacer_next(pacer.it, &beat, &r);
  punctual_pacer_next(pacer.it, &beat, &r);
  CHECK(r.spun_ns == 0);
  CHECK(punctual_pacer_set_rate(pacer.it, 100, 1) == PUNCTUAL_OK);
  CHECK(punctual_pacer_nudge_ns(pacer.it, 10 * us) == PUNCTUAL_OK);
  punctual_pacer_next(pacer.it, &beat, &r);
  CHECK(punctual_pacer_align_ns(pacer.it, 0) == PUNCTUAL_OK);
  CHECK(punctual_pacer_deadline_ns(pacer.it, &due) == PUNCTUAL_OK);
  CHECK(due % (10 * ms) == 0);
  CHECK(punctual_pacer_align_wall_ns(pacer.it, 0) == PUNCTUAL_OK);
  CHECK(punctual_pacer_poll(pacer.it, &beat, &r) == PUNCTUAL_GAVE_UP);
  CHECK(beat.delivered == 0);
  CHECK((r.left_ns > 0 && r.left_ns <= 15 * ms));
  CHECK(punctual_pacer_pause(pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_pacer_resume(pacer.it) == PUNCTUAL_OK);
  CHECK(text_of([&](char* b, std::size_t n) {
          return punctual_pacer_text(pacer.it, b, n);
        }).find("pacer 100 Hz, skip") == 0);

  owned_waker waker;
  REQUIRE(punctual_waker_create(&waker.it) == PUNCTUAL_OK);
  punctual_waker_wake(waker.it);
  const std::uint64_t index = beat.index;
  CHECK(punctual_pacer_next_or_woken(pacer.it, waker.it, &beat, &r) == PUNCTUAL_WOKEN);
  CHECK((beat.delivered == 0 && beat.index == index && beat.steps == 0));
  punctual_waker_reset(waker.it);
  CHECK(punctual_pacer_next_or_woken(pacer.it, waker.it, &beat, &r) == PUNCTUAL_REACHED);
  CHECK(punctual_pacer_stop(pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_pacer_next(pacer.it, &beat, &r) == PUNCTUAL_STOPPED);
  CHECK(punctual_pacer_restart(pacer.it) == PUNCTUAL_OK);
  CHECK(punctual_pacer_next(pacer.it, &beat, &r) == PUNCTUAL_ALREADY_PAST);
  CHECK(beat.index == 0);
}

TEST_CASE("a burst is as long as C asked for", "[c_face]") {
  owned_pacer pacer;
  REQUIRE(punctual_pacer_create(200, 1, PUNCTUAL_BURST, 2, nullptr, &pacer.it) == PUNCTUAL_OK);
  punctual_pacer_next(pacer.it, nullptr, nullptr);
  punctual_block_for_ns(48 * ms, nullptr);  // nine or so beats
  punctual_beat beat = PUNCTUAL_BEAT_INIT;
  int at_once = 0;
  while (punctual_pacer_next(pacer.it, &beat, nullptr) == PUNCTUAL_ALREADY_PAST) ++at_once;
  CHECK(at_once <= 2);
  CHECK(at_once > 0);
}

TEST_CASE("statistics from C count, merge and draw", "[c_face]") {
  owned_statistics a, b;
  REQUIRE(punctual_statistics_create(&a.it) == PUNCTUAL_OK);
  REQUIRE(punctual_statistics_create(&b.it) == PUNCTUAL_OK);
  for (int i = 1; i <= 100; ++i) punctual_statistics_record_ns(a.it, i);
  punctual_statistics_record_ns(b.it, 1000);
  CHECK(punctual_statistics_merge(a.it, b.it) == PUNCTUAL_OK);
  CHECK(punctual_statistics_count(a.it) == 101);
  std::int64_t mean = 0, median = 0, longest = 0;
  CHECK(punctual_statistics_mean_ns(a.it, &mean) == PUNCTUAL_OK);
  CHECK(punctual_statistics_quantile_ns(a.it, 0.5, &median) == PUNCTUAL_OK);
  CHECK(punctual_statistics_quantile_ns(a.it, 1, &longest) == PUNCTUAL_OK);
  CHECK(mean == (5050 + 1000) / 101);
  CHECK(median == 51);
  CHECK(longest == 1000);
  CHECK(text_of([&](char* t, std::size_t n) {
          return punctual_statistics_text(a.it, t, n);
        }).find("101 recorded") == 0);
  CHECK(text_of([&](char* t, std::size_t n) {
          return punctual_statistics_json(a.it, t, n);
        }).find("{\"unit\":\"ns\",\"count\":101") == 0);
  CHECK(punctual_statistics_reset(a.it) == PUNCTUAL_OK);
  CHECK(punctual_statistics_count(a.it) == 0);
}

TEST_CASE("a text that does not fit is cut, with its zero, and its length told", "[c_face]") {
  owned_statistics none;
  REQUIRE(punctual_statistics_create(&none.it) == PUNCTUAL_OK);
  const std::string whole =
      text_of([&](char* t, std::size_t n) { return punctual_statistics_text(none.it, t, n); });
  REQUIRE(whole.size() > 6);
  std::array<char, 8> cut;
  cut.fill('x');
  CHECK(punctual_statistics_text(none.it, cut.data(), 6) ==
        static_cast<std::int64_t>(whole.size()));
  CHECK(std::string(cut.data()) == whole.substr(0, 5));
  CHECK((cut[6] == 'x' && cut[7] == 'x'));
  CHECK(punctual_statistics_text(none.it, cut.data(), 0) ==
        static_cast<std::int64_t>(whole.size()));
  CHECK(cut[0] == whole[0]);
}

TEST_CASE("a calibration from C says what the C++ one says", "[c_face]") {
  punctual_calibration found{};
  found.size = sizeof found;
  const std::int64_t from = punctual_now_ns();
  CHECK(punctual_calibrate_ns(5 * ms, &found) == PUNCTUAL_OK);
  CHECK(punctual_now_ns() - from < 1'000 * ms);
  const punctual::calibration all = punctual::current_calibration();
  CHECK(std::string(found.platform) == all.platform);
  CHECK(std::string(found.native_call) == all.native_call);
  CHECK(std::string(found.counter_reason) == all.counter_reason);
  CHECK((found.counter_used != 0) == all.counter_used);
  CHECK(found.clock_read_ns == all.clock_read.count());
  CHECK(found.coarse_read_ns == all.coarse_read.count());
  CHECK(found.counter_read_ns == all.counter_read.count());
  CHECK(found.past_deadline_ns == all.past_deadline.count());
  CHECK(found.shortest_native_wait_ns == all.shortest_native_wait.count());
  CHECK(found.native_waits == all.native_waits);
  CHECK(found.took_ns == all.took.count());
  CHECK(found.slack_ns == all.slack.count());
  CHECK(found.took_ns > 0);
  punctual_calibration last{};
  last.size = sizeof last;
  CHECK(punctual_current_calibration(&last) == PUNCTUAL_OK);
  CHECK(std::memcmp(&last, &found, sizeof last) == 0);
  CHECK(text_of(punctual_calibration_text) == punctual::to_text(all));
  CHECK(text_of(punctual_calibration_json) == punctual::to_json(all));
  CHECK(punctual_calibrate_ns(-1, nullptr) == PUNCTUAL_OK);  // may take no time at all
}

TEST_CASE("JSON from C has decimal points where the program's locale has commas", "[c_face]") {
  const support::comma_locale german;
  if (!german.imposed()) {
    return support::skip("this C library takes no locale from a file of ours");
  }
  REQUIRE(punctual_calibrate_ns(ms, nullptr) == PUNCTUAL_OK);
  CHECK(support::json_reader::read(text_of(punctual_calibration_json)));
  owned_statistics some;
  REQUIRE(punctual_statistics_create(&some.it) == PUNCTUAL_OK);
  for (int i = 1; i < 100; ++i) punctual_statistics_record_ns(some.it, i * 1001);
  CHECK(support::json_reader::read(
      text_of([&](char* b, std::size_t n) { return punctual_statistics_json(some.it, b, n); })));
}

TEST_CASE("a thread that waits in C is handed back as it was", "[c_face][G8]") {
  errno = 4711;
  const int slack_before = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  punctual_receipt r = fresh();
  punctual_sleep_for_ms(3, &r);
  punctual_block_for_ns(ms, &r);
  punctual_sleep_until_ns(-1, &r);
  const int kept = errno;
  CHECK(kept == 4711);
  CHECK(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == slack_before);

  // Not a cancellation point: the request waits for one.
  struct passed {
    std::atomic<bool> ready{false}, waited{false};
  } seen;
  pthread_t thread{};
  REQUIRE(::pthread_create(
              &thread, nullptr,
              [](void* to) -> void* {
                passed& p = *static_cast<passed*>(to);
                p.ready = true;
                punctual_sleep_for_ms(50, nullptr);
                p.waited = true;
                ::pthread_testcancel();
                return nullptr;
              },
              &seen) == 0);
  while (!seen.ready) std::this_thread::yield();
  ::pthread_cancel(thread);
  void* ended = nullptr;
  ::pthread_join(thread, &ended);
  CHECK(seen.waited);
  CHECK(ended == PTHREAD_CANCELED);
}
