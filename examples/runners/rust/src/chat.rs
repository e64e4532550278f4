//! Puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of servers
//! that a rule is there for; `mockllm list quirks NAME` describes it.

use crate::json::{self, object, Json};
use crate::sse::excerpt;

#[derive(Default)]
pub struct Chat {
    text: String,
    reasoning: String,
    refusal: String,
    id: String,
    model: String,
    finish: String,
    calls: Vec<Call>,
    last: usize, // the call that the last fragment belongs to
    usage: Option<Json>,
    errors: Vec<String>,
    opaque: Vec<String>, // what has to be sent back unchanged, such as signatures
    complete: bool,
    failed: bool,
}

/// A call while its fragments arrive.
struct Call {
    position: i64,
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
}

impl Chat {
    pub fn feed(&mut self, event: &str, payload: &Json) {
        if self.failed {
            return;
        }
        set_once(&mut self.id, payload.get("id").text());
        set_once(&mut self.model, payload.get("model").text());
        let bare = event == "error" || payload.get("object").text() == "error"; // [err-event-line]
        let error = Some(payload.get("error"))
            .filter(|found| !found.is_empty())
            .or(bare.then_some(payload));
        for choice in payload.get("choices").items() {
            // The request has n=1 [chat-n-choices].
            if choice.get("index").count().unwrap_or(0) == 0 {
                self.choice(choice, error.is_some());
            }
        }
        let usage = payload.get("usage");
        self.count(if usage.is_empty() { payload.get("x_groq").get("usage") } else { usage });
        if let Some(error) = error {
            self.fail(message(error));
        }
    }

    fn choice(&mut self, choice: &Json, failing: bool) {
        // The delta first: the chunk with the finish may have one, and more deltas may follow it
        // [chat-finish-with-last-delta, chat-delta-after-finish].
        let delta = choice.get("delta");
        let (thoughts, content) = parts(delta.get("content"));
        let mut summary = String::new();
        for detail in delta.get("reasoning_details").items() {
            summary.push_str(first(&[detail.get("text").text(), detail.get("summary").text()]));
            self.keep(detail.get("signature").text());
            self.keep(detail.get("data").text());
        }
        // Several fields repeat each other [chat-reasoning-fields].
        let fields = [
            &thoughts,
            delta.get("reasoning_content").text(),
            delta.get("reasoning").text(),
            &summary,
        ];
        self.reasoning.push_str(first(&fields));
        self.text.push_str(&content);
        self.refusal.push_str(delta.get("refusal").text());
        for entry in delta.get("tool_calls").items() {
            if *entry.get("custom") == Json::Null || *entry.get("function") != Json::Null {
                self.fragment(entry);
            }
        }
        let finish = choice.get("finish_reason").text();
        if !finish.is_empty() && !failing {
            set_once(&mut self.finish, finish); // the first one counts [chat-finish-twice]
            self.complete = true;
        }
    }

    /// Adds a fragment to its call. Null and "" mean absent, in every field.
    fn fragment(&mut self, entry: &Json) {
        let function = entry.get("function");
        let (index, id, name) =
            (entry.get("index").count(), entry.get("id").text(), function.get("name").text());
        self.last = self.find(index, id, name).unwrap_or_else(|| {
            let position = index.unwrap_or(self.calls.len() as i64);
            let [id, name, arguments] = Default::default();
            self.calls.push(Call { position, index, id, name, arguments });
            self.calls.len() - 1
        });
        let call = &mut self.calls[self.last];
        set_once(&mut call.id, id); // the first id stays [chat-id-new-every-chunk]
        if call.name != name {
            // The same name again is a repetition [chat-name-repeated], another one is its next
            // fragment [chat-name-split].
            call.name.push_str(name);
        }
        match function.get("arguments") {
            whole @ (Json::Object(_) | Json::Array(_)) => {
                call.arguments.push_str(&whole.to_string())
            } // [chat-args-object]
            fragment => call.arguments.push_str(fragment.text()),
        }
        self.keep(entry.get("extra_content").get("google").get("thought_signature").text());
    }

    /// The call that a fragment continues; None if it begins a new one.
    fn find(&self, index: Option<i64>, id: &str, name: &str) -> Option<usize> {
        let same = |at: &usize| index.is_none() || self.calls[*at].index == index;
        let mut latest = (0..self.calls.len()).rev().filter(same);
        if let Some(known) = latest.clone().find(|&at| !id.is_empty() && self.calls[at].id == id) {
            return Some(known);
        }
        let mut at = latest.next()?;
        if index.is_none() {
            at = self.last;
        }
        let last = &self.calls[at];
        let is_new = if !id.is_empty() && !last.id.is_empty() {
            // Servers give all calls the index 0 [chat-index-all-zero], leave it out
            // [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk].
            !name.is_empty() || index.is_none()
        } else if !name.is_empty() && !last.name.is_empty() {
            index.is_none() || name != last.name && !last.arguments.is_empty()
        } else {
            false
        };
        (!is_new).then_some(at)
    }

    /// Takes the usage. Each is a total, so the last one counts; null does not erase it.
    fn count(&mut self, usage: &Json) {
        let number = |found: &Json| found.count().map_or(Json::Null, Json::number);
        let (input, output) =
            (number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")));
        if (&input, &output) != (&Json::Null, &Json::Null) {
            self.usage = Some(object(vec![
                ("input", input),
                ("output", output),
                (
                    "reasoning",
                    number(usage.get("completion_tokens_details").get("reasoning_tokens")),
                ),
                ("cached", number(usage.get("prompt_tokens_details").get("cached_tokens"))),
            ]));
        }
    }

    /// Keeps what has to be sent back unchanged, once.
    fn keep(&mut self, opaque: &str) {
        if !opaque.is_empty() && !self.opaque.iter().any(|one| one == opaque) {
            self.opaque.push(opaque.to_string());
        }
    }

    /// Ends the answer with an error: there is no finish, and what follows is ignored.
    pub fn fail(&mut self, message: String) {
        if !self.failed {
            self.failed = true;
            self.finish.clear();
            self.errors.push(message);
        }
    }

    /// Ends the input, and returns the outcome. Only an answer that is complete has calls: if it
    /// was cut, their arguments may be incomplete even if they are JSON.
    pub fn close(mut self) -> Json {
        if !self.complete {
            self.fail("the stream was cut: it ended without a finish_reason".to_string());
        }
        if self.failed {
            self.calls.clear();
        }
        self.calls.sort_by_key(|call| call.position);
        let mut good = Vec::new();
        for (number, call) in self.calls.iter().enumerate() {
            match problem(call) {
                Some(problem) => self
                    .errors
                    .push(format!("call {number} ({}, {}) {problem}", call.name, call.id)),
                None => good.push(object(vec![
                    ("id", first(&[&call.id, &self.unused_id(number)]).into()),
                    ("name", call.name.as_str().into()),
                    ("arguments", first(&[&call.arguments, "{}"]).into()),
                    ("raw_arguments", call.arguments.as_str().into()),
                ])),
            }
        }
        let or_null = |text: String| {
            if text.is_empty() {
                Json::Null
            } else {
                text.into()
            }
        };
        let list = |texts: Vec<String>| Json::Array(texts.into_iter().map(Json::String).collect());
        object(vec![
            ("text", self.text.into()),
            ("reasoning", self.reasoning.into()),
            ("refusal", self.refusal.into()),
            ("role", "assistant".into()),
            ("finish", or_null(self.finish)),
            ("tool_calls", Json::Array(good)),
            ("usage", self.usage.unwrap_or(Json::Null)),
            ("errors", list(self.errors)),
            ("crash", Json::Null),
            ("opaque", list(self.opaque)),
            ("model", or_null(self.model)),
            ("response_id", or_null(self.id)),
        ])
    }

    /// An id for a call that got none, the same each time.
    fn unused_id(&self, number: usize) -> String {
        let mut id = format!("call_{number}");
        while self.calls.iter().any(|call| call.id == id) {
            id.push('_');
        }
        id
    }
}

/// Why a call must not run; None if it may. Broken arguments are not repaired: that would be to
/// guess what the tool should do.
fn problem(call: &Call) -> Option<String> {
    if call.name.is_empty() {
        return Some("never got a name".to_string());
    }
    if call.id == "null" || call.name == "null" {
        return Some("has the text null for an id or a name".to_string());
    }
    match json::parse(first(&[&call.arguments, "{}"])) {
        Some(Json::Object(_)) => None,
        _ => Some(format!("has arguments that are no JSON object: {}", excerpt(&call.arguments))),
    }
}

/// The reasoning and the text of a content, which may be a list of parts [chat-content-parts].
fn parts(content: &Json) -> (String, String) {
    let (mut thoughts, mut text) = (String::new(), content.text().to_string());
    for part in content.items() {
        if part.get("type").text() == "thinking" {
            thoughts.push_str(&parts(part.get("thinking")).1);
        } else {
            text.push_str(part.get("text").text());
        }
    }
    (thoughts, text)
}

/// The message of an error in the shape of any service, with its code or type.
fn message(error: &Json) -> String {
    let inner = error.get("error");
    if !inner.is_empty() {
        return message(inner);
    }
    let whole = error.to_string();
    let text = first(&[error.get("message").text(), error.text(), &whole]);
    let kinds = ["code", "status", "type"].map(|key| error.get(key));
    match kinds.into_iter().find(|kind| !kind.is_empty()) {
        Some(Json::String(kind)) => format!("{text} ({kind})"),
        Some(kind) => format!("{text} ({kind})"),
        None => text.to_string(),
    }
}

fn set_once(field: &mut String, value: &str) {
    if field.is_empty() {
        field.push_str(value);
    }
}

/// The first text that is not empty.
fn first<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().copied().find(|text| !text.is_empty()).unwrap_or("")
}
