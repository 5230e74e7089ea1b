// Command lines of the bench programs: `--name value` and `--name`, with a wrong one told in one
// line. A file that cannot be written is one, before anything is measured; so is, at the end, a
// standard output that did not take everything.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// One option: its name without dashes, what it takes (empty: nothing), what it does.
struct option {
  std::string_view name;
  std::string_view takes;
  std::string_view help;
};

/// Parses a command line against the options that a program has; exits with 2 on a wrong argument.
class options {
 public:
  options(int argc, char** argv, std::string_view purpose, const std::vector<option>& known)
      : program_(argc > 0 ? argv[0] : "bench") {
    std::atexit([] {
      if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
      std::fputs("standard output did not take everything\n", stderr);
      std::_Exit(1);
    });
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "--help") help(purpose, known);
      const option* found = nullptr;
      for (const option& each : known) {
        if (word.substr(0, 2) == "--" && word.substr(2) == each.name) found = &each;
      }
      if (found == nullptr) wrong("unknown argument '" + std::string(word) + "', see --help");
      std::string value;
      if (!found->takes.empty()) {
        if (++i == argc) wrong("--" + std::string(found->name) + " needs a value");
        value = argv[i];
      }
      if (found->takes == "FILE") check_writable(value);
      given_[std::string(found->name)] = value;
    }
  }

  bool has(const std::string& name) const { return given_.count(name) != 0; }

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = given_.find(name);
    return found == given_.end() ? otherwise : found->second;
  }

  double number(const std::string& name, double otherwise, double least, double most) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return otherwise;
    return parse(name, found->second, least, most);
  }

  std::vector<double> numbers(const std::string& name, std::vector<double> otherwise, double least,
                              double most) const {
    if (!has(name)) return otherwise;
    std::vector<double> all;
    for (const std::string& word : words(name)) all.push_back(parse(name, word, least, most));
    return all;
  }

  std::vector<std::string> words(const std::string& name) const {
    std::vector<std::string> all;
    if (!has(name)) return all;
    std::string rest = text(name);
    for (std::size_t comma = 0; comma != std::string::npos; rest.erase(0, comma + 1)) {
      comma = rest.find(',');
      all.push_back(rest.substr(0, comma));
      if (all.back().empty()) wrong("--" + name + " takes a list, not '" + text(name) + "'");
    }
    return all;
  }

  [[noreturn]] void wrong(const std::string& message) const {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), message.c_str());
    std::exit(2);
  }

 private:
  void check_writable(const std::string& name) const {
    if (name == "-") return;
    std::FILE* file = std::fopen(name.c_str(), "a");
    if (file == nullptr) wrong(name + ": " + std::strerror(errno));
    std::fclose(file);
  }

  double parse(const std::string& name, const std::string& word, double least, double most) const {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !(value >= least && value <= most)) {
      char range[64];
      std::snprintf(range, sizeof range, "%g to %g", least, most);
      wrong("--" + name + " takes " + range + ", not '" + word + "'");
    }
    return value;
  }

  [[noreturn]] void help(std::string_view purpose, const std::vector<option>& known) const {
    std::printf("%s: %.*s\n", program_.c_str(), static_cast<int>(purpose.size()), purpose.data());
    for (const option& each : known) {
      std::string left = "  --" + std::string(each.name) + " " + std::string(each.takes);
      left.resize(left.size() < 26 ? 26 : left.size() + 1, ' ');
      std::printf("%s%.*s\n", left.c_str(), static_cast<int>(each.help.size()), each.help.data());
    }
    std::exit(0);
  }

  std::string program_;
  std::map<std::string, std::string> given_;
};

}  // namespace bench
