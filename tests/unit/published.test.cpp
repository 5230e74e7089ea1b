// Mistake that would live without it: a value whose writer was half-way when another thread forked
// stays unreadable, and can never be replaced, in the child.
#include <punctual/published.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace {

// So large that a writer is nearly always half-way.
struct wide {
  std::array<std::uint64_t, 512> words;
  static wide all(std::uint64_t value) {
    wide made{};
    made.words.fill(value);
    return made;
  }
  bool is_whole() const {
    for (const std::uint64_t word : words) {
      if (word != words[0]) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("a published value is none at first, then the newest, under a new version each time",
          "[published]") {
  punctual::published<wide> value;
  wide seen{};
  CHECK(value.version() == 0);
  CHECK_FALSE(value.read(seen));
  std::uint32_t before = 0;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    REQUIRE(value.write(wide::all(i)));
    REQUIRE(value.version() != before);
    before = value.version();
    REQUIRE(value.read(seen));
    REQUIRE(seen.words[0] == i);
  }
}

TEST_CASE("what is read is one writer's whole value, however many write at once", "[published]") {
  punctual::published<wide> value;
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    wide seen{};
    while (!done) {
      if (!value.read(seen)) continue;
      if (!seen.is_whole()) ++torn;
    }
  });
  const auto write = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < 5000; ++i) value.write(wide::all(first + i));
  };
  std::thread one([&] { write(0); });
  std::thread other([&] { write(1'000'000); });
  one.join();
  other.join();
  wide last{};
  CHECK(value.read(last));
  CHECK(last.is_whole());
  done = true;
  reader.join();
  CHECK(torn == 0);
}

TEST_CASE("a fork while another thread publishes leaves the child a value, and lets it write",
          "[published][fork]") {
  punctual::published<wide> value;
  REQUIRE(value.write(wide::all(1)));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 2; !done; ++i) value.write(wide::all(i));
  });
  int unreadable = 0;
  int unwritable = 0;
  for (int i = 0; i < 100; ++i) {
    const int status = support::in_child([&] {
      wide seen{};
      if (!value.read(seen) || !seen.is_whole()) return 1;
      if (!value.write(wide::all(7)) || !value.read(seen) || seen.words[0] != 7) return 2;
      return 0;
    });
    unreadable += status == 1 ? 1 : 0;
    unwritable += status == 2 ? 1 : 0;
    CHECK(status <= 2);
  }
  done = true;
  writer.join();
  CHECK(unreadable == 0);
  CHECK(unwritable == 0);
}
