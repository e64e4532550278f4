//! The client under test: replace what is here by your client, and keep `main.rs`.
//!
//! A client gets the answer of a model as it comes from the network, in reads of bytes
//! (`feed_bytes`), or as decoded events (`feed_event`). `close` ends the input and returns what the
//! client made of the answer, with the keys of the protocol of runners.

use crate::chat::Chat;
use crate::json::{object, Json};
use crate::sse::Events;

#[derive(Default)]
pub struct Client {
    answer: Chat,
    events: Events,
}

pub fn info() -> Json {
    object(vec![
        ("name", "example-rust".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("language", "rust".into()),
        ("entry_point", "Client::feed_bytes".into()),
        ("adapter", "src/main.rs".into()),
    ])
}

pub fn has(api: &str) -> bool {
    api == "chat"
}

impl Client {
    pub fn feed_bytes(&mut self, data: &[u8]) {
        self.events.feed(data, &mut self.answer);
    }

    pub fn feed_event(&mut self, event: &str, payload: &Json) {
        self.answer.feed(event, payload);
    }

    pub fn close(mut self) -> Json {
        self.events.close(&mut self.answer);
        self.answer.close()
    }
}
