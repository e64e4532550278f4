//! Reads and writes JSON. In a real client, `serde_json` is in its place.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String), // as it is written
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

const MAX_DEPTH: usize = 500;

/// The value of a text, if it is one whole JSON value.
pub fn parse(text: &str) -> Option<Json> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(value)
}

pub fn object(members: Vec<(&str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::String(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::String(text)
    }
}

// A server may send null, or another type, for every field: these are empty for all else.
impl Json {
    pub fn number(value: i64) -> Json {
        Json::Number(value.to_string())
    }

    /// The value of a key, the last one if there are several; `Null` if there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(members) => members
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map_or(&Json::Null, |found| &found.1),
            _ => &Json::Null,
        }
    }

    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Json::String(text) => text,
            _ => "",
        }
    }

    /// A whole number, also one written as 7.0.
    pub fn count(&self) -> Option<i64> {
        match self {
            Json::Number(text) => text
                .parse::<f64>()
                .ok()
                .filter(|number| number.fract() == 0.0)
                .map(|number| number as i64),
            _ => None,
        }
    }

    /// Whether it says nothing: null, false, "" or {}.
    pub fn is_empty(&self) -> bool {
        match self {
            Json::Null | Json::Bool(false) => true,
            Json::String(text) => text.is_empty(),
            Json::Object(members) => members.is_empty(),
            _ => false,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Whether the next character, after space, is this one; it is then taken.
    fn take(&mut self, wanted: u8) -> bool {
        self.space();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.take(b'{') {
            return self.members(depth);
        }
        if self.take(b'[') {
            return self.elements(depth);
        }
        if self.take(b'"') {
            return self.rest().map(Json::String);
        }
        let start = self.at;
        while self.peek().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "null" => Some(Json::Null),
            "true" => Some(Json::Bool(true)),
            "false" => Some(Json::Bool(false)),
            word => is_number(word).then(|| Json::Number(word.to_string())),
        }
    }

    fn members(&mut self, depth: usize) -> Option<Json> {
        let mut found = Vec::new();
        if self.take(b'}') {
            return Some(Json::Object(found));
        }
        loop {
            let key = if self.take(b'"') {
                self.rest()?
            } else {
                return None;
            };
            if !self.take(b':') {
                return None;
            }
            found.push((key, self.value(depth + 1)?));
            if !self.take(b',') {
                return self.take(b'}').then_some(Json::Object(found));
            }
        }
    }

    fn elements(&mut self, depth: usize) -> Option<Json> {
        let mut found = Vec::new();
        if self.take(b']') {
            return Some(Json::Array(found));
        }
        loop {
            found.push(self.value(depth + 1)?);
            if !self.take(b',') {
                return self.take(b']').then_some(Json::Array(found));
            }
        }
    }

    /// The rest of a string, after its quote.
    fn rest(&mut self) -> Option<String> {
        let mut found = String::new();
        loop {
            let plain = self.text[self.at..]
                .bytes()
                .position(|byte| byte < b' ' || byte == b'"' || byte == b'\\')?;
            found.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain + 1;
            match self.text.as_bytes()[self.at - 1] {
                b'"' => return Some(found),
                b'\\' => found.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => kind as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(),
            _ => return None,
        })
    }

    /// A character of one escape, or of two that are a surrogate pair.
    fn code_point(&mut self) -> Option<char> {
        let high = self.hex()?;
        if (0xd800..0xdc00).contains(&high) && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            self.at = before;
        }
        Some(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())?
    }
}

/// Whether a word is a number of JSON, which has fewer forms than one of Rust.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word).as_bytes();
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let leading_zero = whole > 1 && digits[0] == b'0';
    let bare_point =
        digits.get(whole) == Some(&b'.') && !digits.get(whole + 1).is_some_and(u8::is_ascii_digit);
    whole > 0 && !leading_zero && !bare_point && word.parse::<f64>().is_ok()
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => out.write_str("null"),
            Json::Bool(value) => write!(out, "{value}"),
            Json::Number(text) => out.write_str(text),
            Json::String(text) => write_string(text, out),
            Json::Array(items) => {
                out.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                out.write_str("]")
            }
            Json::Object(members) => {
                out.write_str("{")?;
                for (at, (key, value)) in members.iter().enumerate() {
                    out.write_str(if at == 0 { "" } else { "," })?;
                    write_string(key, out)?;
                    write!(out, ":{value}")?;
                }
                out.write_str("}")
            }
        }
    }
}

fn write_string(text: &str, out: &mut fmt::Formatter) -> fmt::Result {
    out.write_str("\"")?;
    for one in text.chars() {
        match one {
            '"' | '\\' => write!(out, "\\{one}")?,
            '\0'..='\x1f' => write!(out, "\\u{:04x}", one as u32)?,
            _ => write!(out, "{one}")?,
        }
    }
    out.write_str("\"")
}
