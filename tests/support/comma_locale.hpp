// A locale whose decimal point is a comma, made from nothing: no package needs to be installed.
//
// The C library reads one file of it, LC_NUMERIC; the format is glibc's. Elsewhere `imposed()` is
// false, and the test says so and skips.
#pragma once

#include <array>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace support {

/// Imposed on the process while it lives.
class comma_locale {
 public:
  comma_locale() {
    folder_ =
        std::filesystem::temp_directory_path() / ("punctual-locale-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "xx");
    std::ofstream file(folder_ / "xx" / "LC_NUMERIC", std::ios::binary);
    // Magic, number of fields, where each begins: point, thousands, grouping, the first two wide,
    // codeset.
    const std::array<std::uint32_t, 8> head{0x20031114, 6, 32, 34, 36, 40, 44, 48};
    const std::array<std::uint32_t, 2> wide{',', '.'};
    file.write(reinterpret_cast<const char*>(head.data()), sizeof head);
    file.write(",\0.\0\x03\x03\0\0", 8);
    file.write(reinterpret_cast<const char*>(wide.data()), sizeof wide);
    file.write("ANSI_X3.4-1968", 15);
    file.close();
    ::setenv("LOCPATH", folder_.c_str(), 1);
    std::setlocale(LC_NUMERIC, "xx");
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "%.1f", 1.5);
    imposed_ = std::string(text.data()) == "1,5";
  }
  ~comma_locale() {
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  comma_locale(const comma_locale&) = delete;
  comma_locale& operator=(const comma_locale&) = delete;

  bool imposed() const { return imposed_; }

 private:
  std::filesystem::path folder_;
  bool imposed_ = false;
};

}  // namespace support
