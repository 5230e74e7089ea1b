// Writes JSON, one value after the other; commas and quotes are its own business.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace bench {

class json {
 public:
  json& open() { return begin('{'); }
  json& open(std::string_view name) { return key(name).begin('{'); }
  json& close() { return end('}'); }
  json& open_list(std::string_view name) { return key(name).begin('['); }
  json& open_list() { return begin('['); }
  json& close_list() { return end(']'); }

  json& put(std::string_view name, std::string_view value) { return key(name).text(value); }
  json& put(std::string_view name, const char* value) { return key(name).text(value); }
  json& put(std::string_view name, bool value) { return key(name).raw(value ? "true" : "false"); }
  json& put(std::string_view name, double value) { return key(name).number(value); }
  json& put(std::string_view name, std::int64_t value) {
    return key(name).raw(std::to_string(value));
  }
  json& put(std::string_view name, std::uint64_t value) {
    return key(name).raw(std::to_string(value));
  }
  json& put(std::string_view name, int value) { return key(name).raw(std::to_string(value)); }
  /// A value that is JSON already.
  json& put_json(std::string_view name, std::string_view value) { return key(name).raw(value); }

  json& item(std::int64_t value) { return separate().raw(std::to_string(value)); }
  json& item(double value) { return separate().number(value); }
  json& item(std::string_view value) { return separate().text(value); }
  json& open_item() { return separate().begin('{'); }
  json& open_list_item() { return separate().begin('['); }

  const std::string& str() const { return out_; }

 private:
  json& separate() {
    if (!first_) out_ += ',';
    if (!first_ && out_.size() - line_ > 100) newline();
    first_ = false;
    return *this;
  }
  json& key(std::string_view name) {
    separate();
    text(name);
    out_ += ':';
    return *this;
  }
  json& begin(char bracket) {
    out_ += bracket;
    first_ = true;
    return *this;
  }
  json& end(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  json& raw(std::string_view value) {
    out_ += value;
    return *this;
  }
  json& number(double value) {
    if (!std::isfinite(value)) return raw("null");
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.10g", value);
    return raw(digits);
  }
  json& text(std::string_view value) {
    out_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') out_ += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) out_ += c;
    }
    out_ += '"';
    return *this;
  }
  void newline() {
    out_ += '\n';
    line_ = out_.size();
  }

  std::string out_;
  std::size_t line_ = 0;
  bool first_ = true;
};

/// Writes a file, or standard output where the name is "-". @return
/// false, and a line on stderr, if it cannot.
inline bool write_file(const std::string& name, const std::string& content) {
  std::FILE* file = name == "-" ? stdout : std::fopen(name.c_str(), "w");
  if (file == nullptr) {
    std::perror(name.c_str());
    return false;
  }
  const bool whole = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  return (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && whole;
}

}  // namespace bench
