/* Turns the bytes of a stream into events: JSON in server-sent events, or plain JSON.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation */
#ifndef SSE_H
#define SSE_H

#include "chat.h"

typedef struct {
    text partial; /* the line that has not ended */
    bool started, after_cr, ended;
    text event, data, body;
    bool has_data;
} events;

/* Takes one read, which may end anywhere, also within a character or a line end. */
void events_feed(events *self, chat *answer, text read);
/* Ends the input. The last event may lack its blank line if its JSON is complete. */
void events_close(events *self, chat *answer);

#endif
