#include "client.h"
#include "chat.h"
#include "sse.h"

struct client {
    chat answer;
    events events;
};

bool client_has(text api) { return is(api, "chat"); }

client *client_new(void) { return take(sizeof(client)); }

void client_feed_bytes(client *self, text read) { events_feed(&self->events, &self->answer, read); }

void client_feed_event(client *self, text event, const json *payload) {
    chat_feed(&self->answer, event, payload);
}

text client_close(client *self) {
    events_close(&self->events, &self->answer);
    return chat_close(&self->answer);
}
