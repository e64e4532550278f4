#include "sse.h"

/* Passes an event on, which a blank line ends. */
static void dispatch(events *self, chat *answer) {
    text data = self->data, event = self->event;
    self->data = self->event = (text){0};
    self->has_data = false;
    if (data.length == 0)
        return;
    const json *payload = json_parse(data);
    text trimmed = data;
    while (trimmed.length > 0 && strchr(" \t\r\n", trimmed.data[trimmed.length - 1]))
        trimmed.length--;
    if (is(trimmed, "[DONE]")) {
        self->ended = true;
    } else if (payload != NULL) {
        chat_feed(answer, event, payload);
    } else {
        /* To leave it out would lose a part of the answer silently. */
        chat_fail(answer, "the data of an event are no JSON: ", excerpt(data));
        self->ended = true;
    }
}

static void line(events *self, chat *answer, text line) {
    if (line.length == 0) {
        dispatch(self, answer);
        return;
    }
    char *colon = memchr(line.data, ':', line.length);
    text name = {line.data, colon ? (size_t)(colon - line.data) : line.length, 0};
    size_t start = name.length + (colon != NULL);
    start += start < line.length && line.data[start] == ' ';
    text value = {line.data + start, line.length - start, 0};
    if (is(name, "data")) {
        if (self->has_data)
            add_string(&self->data, "\n");
        self->has_data = true;
        add_text(&self->data, value);
    } else if (is(name, "event")) {
        self->event = (text){0};
        add_text(&self->event, value);
    } else if (is(name, "") || is(name, "id") || is(name, "retry")) {
        return;
    } else if (self->body.length > 0 || line.data[0] == '{' || line.data[0] == '[') {
        add_text(&self->body, line); /* an error or an answer as plain JSON */
        add_string(&self->body, "\n");
    }
}

static void end_line(events *self, chat *answer) {
    text whole = self->partial;
    if (!self->started && whole.length >= 3 && memcmp(whole.data, "\xef\xbb\xbf", 3) == 0)
        whole = (text){whole.data + 3, whole.length - 3, 0}; /* the byte order mark */
    self->started = true;
    if (!self->ended)
        line(self, answer, whole);
    self->partial.length = 0;
}

/* Lines are split as bytes: in UTF-8 the bytes of CR and LF are in no other character. */
void events_feed(events *self, chat *answer, text read) {
    size_t start = 0;
    for (size_t at = 0; at < read.length; at++) {
        char byte = read.data[at];
        bool after_cr = self->after_cr;
        self->after_cr = byte == '\r';
        if (byte != '\n' && byte != '\r')
            continue;
        add(&self->partial, read.data + start, at - start);
        start = at + 1;
        if (!(byte == '\n' && after_cr)) /* otherwise it is the other half of a CRLF */
            end_line(self, answer);
    }
    add(&self->partial, read.data + start, read.length - start);
}

void events_close(events *self, chat *answer) {
    if (self->partial.length > 0)
        end_line(self, answer);
    if (!self->ended)
        dispatch(self, answer);
    const json *body = self->ended ? NULL : json_parse(self->body);
    if (body == NULL)
        return; /* there is none, or it was cut, so the answer has no end */
    const json *payload = body->kind == JSON_ARRAY ? body->first : body;
    for (; payload != NULL; payload = payload->next)
        chat_feed(answer, (text){0}, payload);
}
