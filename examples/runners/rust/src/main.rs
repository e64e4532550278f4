//! Runs the client in `client.rs` for `mockllm check`: reads a case a line, answers in a line.
//! The protocol is described in docs/runner-protocol.md.

mod base64;
mod chat;
mod client;
mod json;
mod sse;

use client::Client;
use json::{object, Json};
use std::any::Any;
use std::io::{self, BufRead, Write};
use std::panic;
use std::sync::Mutex;

static RAISED: Mutex<String> = Mutex::new(String::new()); // where the last panic was

fn main() -> io::Result<()> {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        *RAISED.lock().unwrap() = place.unwrap_or_default();
    }));
    let mut lines = io::stdin().lock().lines();
    let hello = parsed(&lines.next().expect("mockllm writes the first line")?);
    let (api, level) = (hello.get("api").text(), hello.get("level").text());
    if !client::has(api) || !["bytes", "payloads"].contains(&level) {
        eprintln!("this runner has no {api} at level {level}");
        std::process::exit(2);
    }
    let none = Json::Array(vec![]);
    let members = vec![("client", client::info()), ("unsupported", none)];
    answer("mockllm", Json::number(1), object(members))?;
    for line in lines {
        let job = parsed(&line?);
        let outcome = panic::catch_unwind(|| run(Client::default(), &job)).unwrap_or_else(crash);
        answer("id", job.get("id").clone(), outcome)?;
    }
    Ok(())
}

fn crash(panicked: Box<dyn Any + Send>) -> Json {
    let fixed = panicked.downcast_ref::<&str>().map(|text| text.to_string());
    let message = panicked.downcast_ref::<String>().cloned().or(fixed);
    let raised = RAISED.lock().unwrap().clone();
    let members = vec![("message", message.unwrap_or_default().into()), ("raised", raised.into())];
    object(vec![("crash", object(members))])
}

/// An item of the feed is base64 at level bytes, and [event, payload] at level payloads.
fn run(mut client: Client, job: &Json) -> Json {
    for item in job.get("feed").items() {
        match item {
            Json::String(data) => client.feed_bytes(&base64::decode(data)),
            pair => client.feed_event(pair.items()[0].text(), &pair.items()[1]),
        }
    }
    client.close()
}

fn answer(key: &str, value: Json, mut rest: Json) -> io::Result<()> {
    if let Json::Object(members) = &mut rest {
        members.insert(0, (key.to_string(), value));
    }
    writeln!(io::stdout(), "{rest}")
}

fn parsed(line: &str) -> Json {
    json::parse(line).expect("every line of mockllm is JSON")
}
