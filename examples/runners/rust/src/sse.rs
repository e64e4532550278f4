//! Turns the bytes of a stream into events: JSON in server-sent events, or plain JSON.
//! https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

use crate::chat::Chat;
use crate::json::{self, Json};

#[derive(Default)]
pub struct Events {
    partial: Vec<u8>, // the line that has not ended
    started: bool,
    after_cr: bool,
    ended: bool,
    event: String,
    data: Vec<String>,
    body: Vec<String>,
}

impl Events {
    /// Takes one read, which may end anywhere, also within a character or a line end. Lines are
    /// split as bytes: in UTF-8 the bytes of CR and LF are in no other character.
    pub fn feed(&mut self, mut read: &[u8], answer: &mut Chat) {
        while !read.is_empty() {
            if std::mem::take(&mut self.after_cr) && read[0] == b'\n' {
                read = &read[1..];
                continue;
            }
            let Some(end) = read.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.partial.extend_from_slice(read);
                return;
            };
            self.partial.extend_from_slice(&read[..end]);
            self.after_cr = read[end] == b'\r';
            read = &read[end + 1..];
            self.end_line(answer);
        }
    }

    fn end_line(&mut self, answer: &mut Chat) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        let first = !std::mem::replace(&mut self.started, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| first).unwrap_or(&line);
        if !self.ended {
            self.line(line, answer);
        }
    }

    fn line(&mut self, line: &str, answer: &mut Chat) {
        if line.is_empty() {
            return self.dispatch(answer);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => self.data.push(value.to_string()),
            "event" => self.event = value.to_string(),
            "" | "id" | "retry" => {}
            // An error or an answer as plain JSON.
            _ if !self.body.is_empty() || line.starts_with(['{', '[']) => {
                self.body.push(line.to_string())
            }
            _ => {}
        }
    }

    /// Passes an event on, which a blank line ends.
    fn dispatch(&mut self, answer: &mut Chat) {
        let data = std::mem::take(&mut self.data).join("\n");
        let event = std::mem::take(&mut self.event);
        if data.is_empty() {
            return;
        }
        if data.trim_end() == "[DONE]" {
            self.ended = true;
        } else if let Some(payload) = json::parse(&data) {
            answer.feed(&event, &payload);
        } else {
            // To leave it out would lose a part of the answer silently.
            answer.fail(format!("the data of an event are no JSON: {}", excerpt(&data)));
            self.ended = true;
        }
    }

    /// Ends the input. The last event may lack its blank line if its JSON is complete.
    pub fn close(&mut self, answer: &mut Chat) {
        if !self.partial.is_empty() {
            self.end_line(answer);
        }
        if !self.ended {
            self.dispatch(answer);
        }
        if self.ended {
            return;
        }
        match json::parse(&self.body.join("\n")) {
            Some(Json::Array(payloads)) => payloads.iter().for_each(|one| answer.feed("", one)),
            Some(payload) => answer.feed("", &payload),
            None => {} // there is none, or it was cut, so the answer has no end
        }
    }
}

pub fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}
