// Reads JSON as strictly as its standard says, for judging what the library writes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace support {

/// One value: its own text where it is a number, a word or a string (without the quotes).
struct json_value {
  char kind = '0';  // one of { [ " 0 (number) w (true, false, null)
  std::string text;
  std::map<std::string, json_value> members;
  std::vector<json_value> items;

  const json_value* find(const std::string& name) const {
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  }
  /// The text of a member; "(none)" where there is none.
  std::string of(const std::string& name) const {
    const json_value* const found = find(name);
    return found == nullptr ? "(none)" : found->text;
  }
};

class json_reader {
 public:
  /// Nothing if `text` is not one JSON value and nothing else.
  static std::optional<json_value> read(std::string_view text) {
    json_reader reader(text);
    json_value value;
    if (!reader.value(value)) return std::nullopt;
    reader.blanks();
    if (reader.at_ != text.size()) return std::nullopt;
    return value;
  }

 private:
  explicit json_reader(std::string_view text) : text_(text) {}

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool digits() {
    const std::size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ != from;
  }
  bool number(json_value& value) {
    const std::size_t from = at_;
    take('-');
    if (peek() == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    value.text = text_.substr(from, at_ - from);
    return true;
  }
  bool string(std::string& into) {
    if (!take('"')) return false;
    while (at_ < text_.size() && peek() != '"') {
      if (static_cast<unsigned char>(peek()) < 0x20) return false;
      if (take('\\') && peek() == '\0') return false;
      into += text_[at_++];
    }
    return take('"');
  }
  bool word(std::string_view expected, json_value& value) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    value.kind = 'w';
    value.text = expected;
    return true;
  }
  bool value(json_value& v) {
    blanks();
    const char first = peek();
    if (first == '"') {
      v.kind = '"';
      return string(v.text);
    }
    if (first == '{' || first == '[') {
      v.kind = first;
      ++at_;
      const char end = first == '{' ? '}' : ']';
      blanks();
      if (take(end)) return true;
      do {
        blanks();
        std::string name;
        if (first == '{') {
          if (!string(name) || v.find(name) != nullptr) return false;
          blanks();
          if (!take(':')) return false;
        }
        json_value inner;
        if (!value(inner)) return false;
        if (first == '{') {
          v.members.emplace(std::move(name), std::move(inner));
        } else {
          v.items.push_back(std::move(inner));
        }
        blanks();
      } while (take(','));
      return take(end);
    }
    return word("true", v) || word("false", v) || word("null", v) || number(v);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace support
