// How lengths of time are distributed: a histogram in fixed memory, exact at its ends and in its
// mean.
//
// Layer L1. Every octave of nanoseconds is cut like a piano's, into twelve steps of equal ratio,
// each with its own counter: a step is 5.9 % wide, so its middle is within 3 % of all that was
// counted in it, from one nanosecond to 68 seconds, without keeping the samples. (Equal widths
// instead of equal ratios would take 17 counters an octave for the same.) Nothing here waits, reads
// a clock or knows what is counted.
#pragma once

#include <punctual/time.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace punctual {

/// Counts lengths of time: how many, how long, and how they are spread.
///
/// Guarantee  `count`, `min` and `max` are exact, and so is `mean` while the sum of all lengths is
///            below 292 years. A quantile is within 3 % of the recorded length of that rank up to
///            68 s; all longer ones share a counter that answers `max`. A negative length is exact
///            in `min`, `max` and `mean`, and counts as zero in the quantiles.
/// Cost       `record` takes a few nanoseconds and never allocates. 1.7 KiB.
/// Threads    One at a time.
class statistics {
 public:
  /// One counter: the lengths from `from` to below `to`, and how many of them were recorded.
  struct bucket {
    nanoseconds from;
    nanoseconds to;
    std::uint64_t count;
  };

  /// Counts one length.
  void record(nanoseconds length) noexcept {
    min_ = std::min(min_, length);
    max_ = std::max(max_, length);
    sum_ = saturating_add(sum_, length);
    ++count_;
    std::uint32_t& counter = counters_[position(length)];
    if (counter == std::numeric_limits<std::uint32_t>::max()) halve();
    ++counter;
  }

  /// Adds everything that `other` has counted.
  void merge(const statistics& other) noexcept {
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    sum_ = saturating_add(sum_, other.sum_);
    count_ += other.count_;
    constexpr std::uint64_t full = std::numeric_limits<std::uint32_t>::max();
    bool fits = true;
    for (std::size_t i = 0; i < buckets; ++i) {
      fits = fits && std::uint64_t{counters_[i]} + other.counters_[i] <= full;
    }
    if (!fits) halve();
    for (std::size_t i = 0; i < buckets; ++i) {
      const std::uint64_t more = fits ? other.counters_[i] : half(other.counters_[i]);
      counters_[i] = static_cast<std::uint32_t>(std::min(full, counters_[i] + more));
    }
  }

  /// Forgets everything.
  void reset() noexcept { *this = statistics{}; }

  /// How many lengths were recorded.
  std::uint64_t count() const noexcept { return count_; }
  /// The shortest of them; zero if there is none.
  nanoseconds min() const noexcept { return count_ == 0 ? nanoseconds::zero() : min_; }
  /// The longest of them; zero if there is none.
  nanoseconds max() const noexcept { return count_ == 0 ? nanoseconds::zero() : max_; }
  /// The sum of all; stays at the far end instead of overflowing.
  nanoseconds sum() const noexcept { return sum_; }
  /// Their mean, rounded towards zero; zero if there is none.
  nanoseconds mean() const noexcept {
    if (count_ == 0) return nanoseconds::zero();
    const bool negative = sum_ < nanoseconds::zero();
    const auto bits = static_cast<std::uint64_t>(sum_.count());
    const std::uint64_t size = (negative ? std::uint64_t{0} - bits : bits) / count_;
    return nanoseconds{static_cast<std::int64_t>(negative ? std::uint64_t{0} - size : size)};
  }

  /// The length that the share `q` of all does not exceed.
  ///
  /// @param q  0 answers `min`, 1 answers `max`, both exactly; beyond them and NaN count as 0 or 1.
  nanoseconds quantile(double q) const noexcept {
    if (count_ == 0 || conversion::is_nan(q) || q <= 0) return min();
    if (q >= 1) return max();
    std::uint64_t total = 0;
    for (const std::uint32_t counter : counters_) total += counter;
    // The smallest rank that covers the share: one of four covers a quarter, two of four a half.
    const double share = q * static_cast<double>(total);
    auto rank = static_cast<std::uint64_t>(share);
    if (static_cast<double>(rank) < share || rank == 0) ++rank;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
      seen += counters_[i];
      if (seen >= rank) return std::clamp(middle(i), min_, max_);
    }
    return max();
  }

  /// Calls `visit(bucket)` for every counter that is not zero, from the shortest length to the
  /// longest.
  template <class Visit>
  void for_each_bucket(Visit visit) const {
    for (std::size_t i = 0; i < buckets; ++i) {
      if (counters_[i] != 0) visit(bucket{lowest(i), lowest(i + 1), counters_[i]});
    }
  }

 private:
  static constexpr int first_octave = 6;  // below 64 ns each nanosecond has its own counter
  static constexpr int last_octave =
      36;  // 2^36 ns = 68.7 s; anything longer shares the last counter
  static constexpr std::size_t linear = std::size_t{1} << first_octave;
  static constexpr std::size_t steps = 12;
  static constexpr std::size_t buckets = linear + steps * (last_octave - first_octave) + 1;

  // 2^(27 + i / 12), and for each 32nd of an octave the step in which it begins; none holds two
  // edges.
  static constexpr int scale = 27;
  static constexpr std::array<std::uint32_t, steps + 1> edges{
      134217728, 142198729, 150654306, 159612677, 169103741, 179159172, 189812531,
      201099372, 213057363, 225726413, 239148804, 253369332, 268435456};
  static constexpr std::array<std::uint8_t, 32> step_at{0, 0, 1, 1, 2,  2,  2,  3,  3,  4, 4,
                                                        5, 5, 5, 6, 6,  7,  7,  7,  8,  8, 8,
                                                        9, 9, 9, 9, 10, 10, 10, 11, 11, 11};

  static constexpr std::size_t position(nanoseconds length) noexcept {
    if (length <= nanoseconds::zero()) return 0;
    const auto value = static_cast<std::uint64_t>(length.count());
    if (value < linear) return static_cast<std::size_t>(value);
    const int octave = static_cast<int>(std::bit_width(value)) - 1;
    if (octave >= last_octave) return buckets - 1;
    const std::uint64_t within = (value << scale) >> octave;  // in [2^27, 2^28)
    const std::size_t begins = step_at[(within >> (scale - 5)) % 32];
    const std::size_t step = begins + (within >= edges[begins + 1] ? 1 : 0);
    return linear + static_cast<std::size_t>(octave - first_octave) * steps + step;
  }

  static constexpr nanoseconds lowest(std::size_t index) noexcept {
    if (index >= buckets) return nanoseconds::max();
    if (index < linear) return nanoseconds{static_cast<std::int64_t>(index)};
    const std::size_t beyond = index - linear;
    const int octave = first_octave + static_cast<int>(beyond / steps);
    const std::uint64_t edge = edges[beyond % steps];
    const std::uint64_t up = (std::uint64_t{1} << scale) - 1;
    return nanoseconds{static_cast<std::int64_t>(((edge << octave) + up) >> scale)};
  }

  static constexpr nanoseconds middle(std::size_t index) noexcept {
    if (index + 1 == buckets) return nanoseconds::max();
    return lowest(index) + (lowest(index + 1) - nanoseconds{1} - lowest(index)) / 2;
  }

  // Rounded up: what has been counted once is not forgotten.
  static constexpr std::uint32_t half(std::uint32_t counter) noexcept {
    return counter - counter / 2;
  }

  // A counter is full after 4.3e9: all are halved, so that the shares stay what they are.
  PUNCTUAL_NOINLINE void halve() noexcept {
    for (std::uint32_t& counter : counters_) counter = half(counter);
  }

  std::uint64_t count_ = 0;
  nanoseconds sum_{0};
  nanoseconds min_ = nanoseconds::max();
  nanoseconds max_ = nanoseconds::min();
  std::array<std::uint32_t, buckets> counters_{};
};

/// Writes a length for people: three digits and a unit, `41 ns`, `1.25 us`, `16.6 ms`, `3600 s`;
/// digits beyond are cut off.
inline std::string to_text(nanoseconds length) {
  static constexpr std::array<std::string_view, 4> units{" ns", " us", " ms", " s"};
  const bool negative = length < nanoseconds::zero();
  const auto bits = static_cast<std::uint64_t>(length.count());
  const std::uint64_t magnitude = negative ? std::uint64_t{0} - bits : bits;
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  for (; unit + 1 < units.size() && magnitude / scale >= 1000; ++unit) scale *= 1000;
  const std::uint64_t whole = magnitude / scale;
  std::string text = negative ? "-" : "";
  text += std::to_string(whole);
  const std::size_t decimals = scale == 1 || whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
  if (decimals != 0) {
    const std::string thousandths = std::to_string(1000 + magnitude % scale / (scale / 1000));
    text += '.';
    text += thousandths.substr(1, decimals);
  }
  text += units[unit];
  return text;
}

/// Draws the histogram for a terminal: a line of figures, then a row for each step of 1, 2, 5, 10 …
///
/// A row names its shortest length, how many were counted and up to where the share of all has
/// grown; three empty rows or more are drawn as dots. A step that two rows share is drawn in the
/// row of its middle, so edges hold within 3 %.
inline std::string to_text(const statistics& all) {
  const auto padded = [](const std::string& words, std::size_t width) {
    return words.size() < width ? std::string(width - words.size(), ' ') + words : words;
  };
  std::string text = std::to_string(all.count()) + " recorded";
  if (all.count() == 0) return text + '\n';
  text += ": min " + to_text(all.min()) + ", mean " + to_text(all.mean()) + ", p50 " +
          to_text(all.quantile(0.5)) + ", p90 " + to_text(all.quantile(0.9)) + ", p99 " +
          to_text(all.quantile(0.99)) + ", p99.9 " + to_text(all.quantile(0.999)) + ", max " +
          to_text(all.max()) + '\n';

  struct row {
    nanoseconds from{0};
    std::uint64_t count = 0;
  };
  constexpr std::size_t most_rows = 34;  // 0, then 1, 2, 5, 10 … ns up to 50 s and longer
  std::array<row, most_rows> rows{};
  std::int64_t edge = 1;
  for (std::size_t i = 1; i < most_rows; ++i) {
    rows[i].from = nanoseconds{edge};
    edge = i % 3 == 2 ? edge / 2 * 5 : edge * 2;
  }
  std::uint64_t total = 0;
  std::uint64_t tallest = 0;
  std::size_t first = most_rows;
  std::size_t last = 0;
  all.for_each_bucket([&](const statistics::bucket& each) {
    const nanoseconds middle = each.from + (each.to - nanoseconds{1} - each.from) / 2;
    std::size_t at = 0;
    while (at + 1 < most_rows && rows[at + 1].from <= middle) ++at;
    rows[at].count += each.count;
    tallest = std::max(tallest, rows[at].count);
    total += each.count;
    first = std::min(first, at);
    last = std::max(last, at);
  });
  constexpr std::uint64_t width = 40;
  std::uint64_t seen = 0;
  for (std::size_t i = first; i <= last; ++i) {
    std::size_t next = i;
    while (rows[next].count == 0) ++next;  // the last row is not empty
    if (next - i > 2) {
      text += "     ...\n";
      i = next;
    }
    seen += rows[i].count;
    const std::uint64_t mille = multiply_divide(seen, 1000, total, rounding::down);
    const std::uint64_t bar = multiply_divide(rows[i].count, width, tallest, rounding::up);
    text += padded(to_text(rows[i].from), 8) + padded(std::to_string(rows[i].count), 11) +
            padded(std::to_string(mille / 10) + '.' + std::to_string(mille % 10), 7) + " %";
    if (bar != 0) text += ' ' + std::string(static_cast<std::size_t>(bar), '#');
    text += '\n';
  }
  return text;
}

/// Writes the histogram as one JSON object; all lengths are whole nanoseconds.
///
/// `buckets` lists `[from, to, count]` for every counter that is not zero; `to` is not included.
inline std::string to_json(const statistics& all) {
  const auto number = [](nanoseconds length) { return std::to_string(length.count()); };
  std::string text =
      "{\"unit\":\"ns\",\"count\":" + std::to_string(all.count()) +
      ",\"min\":" + number(all.min()) + ",\"mean\":" + number(all.mean()) +
      ",\"max\":" + number(all.max()) + ",\"quantiles\":{\"0.5\":" + number(all.quantile(0.5)) +
      ",\"0.9\":" + number(all.quantile(0.9)) + ",\"0.99\":" + number(all.quantile(0.99)) +
      ",\"0.999\":" + number(all.quantile(0.999)) + "},\"buckets\":[";
  bool first = true;
  all.for_each_bucket([&](const statistics::bucket& each) {
    text += (first ? "[" : ",[") + number(each.from) + ',' + number(each.to) + ',' +
            std::to_string(each.count) + ']';
    first = false;
  });
  return text + "]}";
}

}  // namespace punctual
