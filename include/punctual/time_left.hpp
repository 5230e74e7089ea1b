// How far a deadline is ahead on a clock of the user's own, whatever the two are counted in.
//
// Layer L1. A clock may count 100 ns since 1601, frames, hours or doubles, and its deadline may be
// counted in something else: each alone may be beyond what nanoseconds can say, while their
// difference is a few milliseconds. So they are subtracted in the period that both share, and only
// the difference becomes nanoseconds. The sign is exact: positive if and only if the clock shows
// less than the deadline.
#pragma once

#include <punctual/conversion.hpp>
#include <punctual/time.hpp>

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace punctual {

namespace conversion {

#if PUNCTUAL_HAS_INT128
template <class Rep>
inline constexpr bool is_wide =
    std::is_same_v<Rep, signed_128> || std::is_same_v<Rep, unsigned_128>;
/// What differences are taken in: as wide as the two, and signed.
template <class A, class B>
using difference = std::conditional_t<is_wide<A> || is_wide<B>, signed_128, std::int64_t>;
#else
template <class Rep>
inline constexpr bool is_wide = false;
template <class A, class B>
using difference = std::int64_t;
#endif

template <class Wide>
inline constexpr Wide most_of = ((Wide{1} << (sizeof(Wide) * 8 - 2)) - 1) * 2 + 1;

/// `count * factor` if that fits, and where it lies if it does not.
template <class Wide>
struct product {
  Wide value;
  int beyond;  // −1, 0 or 1
};
template <class Wide, std::intmax_t factor, class Rep>
constexpr product<Wide> multiplied(Rep count) noexcept {
  constexpr Wide most = most_of<Wide> / factor;
  if constexpr (static_cast<Rep>(-1) < static_cast<Rep>(0)) {  // any signed count is in Wide
    const auto value = static_cast<Wide>(count);
    if (value < (-most_of<Wide> - 1) / factor) return {0, -1};
    return value > most ? product<Wide>{0, 1} : product<Wide>{value * factor, 0};
  } else if constexpr (sizeof(Rep) < sizeof(Wide)) {
    return multiplied<Wide, factor>(static_cast<Wide>(count));
  } else {
    if (count > static_cast<Rep>(most)) return {0, 1};
    return {static_cast<Wide>(count) * factor, 0};
  }
}

template <class DuePeriod, class SeenPeriod, class Due, class Seen>
constexpr nanoseconds integral_difference(Due due, Seen seen) noexcept {
  using wide = difference<Due, Seen>;
  using common =
      typename std::common_type_t<std::chrono::duration<std::int64_t, DuePeriod>,
                                  std::chrono::duration<std::int64_t, SeenPeriod>>::period;
  const product<wide> from = multiplied<wide, std::ratio_divide<SeenPeriod, common>::num>(seen);
  const product<wide> to = multiplied<wide, std::ratio_divide<DuePeriod, common>::num>(due);
  if (from.beyond == 0 && to.beyond == 0) {
    if (from.value < 0 && to.value > most_of<wide> + from.value) return nanoseconds::max();
    if (from.value > 0 && to.value < -most_of<wide> - 1 + from.value) return nanoseconds::min();
    return nanoseconds{converted<common, nanoseconds::period>(to.value - from.value)};
  }
  if (to.beyond != from.beyond) {
    return to.beyond > from.beyond ? nanoseconds::max() : nanoseconds::min();
  }
  // Both beyond 2^63 of so fine a period: whole seconds tell enough, up to one too many.
  const std::int64_t last = converted<SeenPeriod, std::ratio<1>>(seen) - 1;
  return to_nanoseconds(std::chrono::seconds{sum(converted<DuePeriod, std::ratio<1>>(due), -last)});
}

}  // namespace conversion

/// The time from what the clock showed to the deadline: positive while it lies ahead.
///
/// @return  Rounded up, saturating; zero or less if and only if the clock showed the deadline or
///          more. A deadline of NaN is past. A clock that shows NaN is always one nanosecond short.
template <class Clock, class Due, class Seen>
constexpr nanoseconds time_left(const std::chrono::time_point<Clock, Due>& deadline,
                                const std::chrono::time_point<Clock, Seen>& seen) noexcept {
  using namespace conversion;
  using due_period = typename Due::period::type;
  using seen_period = typename Seen::period::type;
  const auto due = deadline.time_since_epoch();
  const auto now = seen.time_since_epoch();
  using due_rep = typename Due::rep;
  using seen_rep = typename Seen::rep;
  constexpr bool of_due = std::is_arithmetic_v<due_rep> || is_wide<due_rep>;
  constexpr bool of_seen = std::is_arithmetic_v<seen_rep> || is_wide<seen_rep>;
  if constexpr (of_due && of_seen) {
    if constexpr (std::is_floating_point_v<due_rep>) {
      if (is_nan(static_cast<double>(due.count()))) return nanoseconds::zero();
    }
    if constexpr (std::is_floating_point_v<seen_rep>) {
      if (is_nan(static_cast<double>(now.count()))) return nanoseconds{1};
    }
    if constexpr (std::is_floating_point_v<due_rep> && std::is_floating_point_v<seen_rep>) {
      return to_nanoseconds(due - now);
    } else if constexpr (std::is_floating_point_v<due_rep> && !is_wide<seen_rep>) {
      // The clock shows whole counts: the first of them that is not below the deadline.
      const std::int64_t first = converted<due_period, seen_period>(due.count());
      if (first == greatest) return nanoseconds::max();
      return integral_difference<seen_period, seen_period>(first, now.count());
    } else if constexpr (std::is_floating_point_v<due_rep>) {
      const nanoseconds shown{-converted<seen_period, nanoseconds::period>(
          -static_cast<difference<seen_rep, seen_rep>>(now.count()))};
      return saturating_subtract(to_nanoseconds(due), shown);
    } else if constexpr (std::is_floating_point_v<seen_rep>) {
      const std::int64_t last = -converted<seen_period, due_period>(-now.count());
      return integral_difference<due_period, due_period>(due.count(), last);
    } else {
      return integral_difference<due_period, seen_period>(due.count(), now.count());
    }
  } else {  // counts of a class: by its own arithmetic
    return to_nanoseconds(due - now);
  }
}

}  // namespace punctual
