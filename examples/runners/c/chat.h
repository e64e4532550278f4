/* Puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of servers
 * that a rule is there for; `mockllm list quirks NAME` describes it. */
#ifndef CHAT_H
#define CHAT_H

#include "json.h"

/* A tool call while its fragments arrive. */
typedef struct call {
    long position, index;
    bool has_index;
    text id, name, arguments;
    struct call *next; /* the one that began after it */
} call;

typedef struct {
    text text, reasoning, refusal, id, model, finish;
    call *calls, *last; /* last: that the last fragment belongs to */
    long count;
    text usage, errors; /* as JSON */
    text opaque;        /* what has to be sent back unchanged, as JSON */
    bool complete, failed;
} chat;

void chat_feed(chat *self, text event, const json *payload);
/* Ends the answer with an error: there is no finish, and what follows is ignored. */
void chat_fail(chat *self, const char *problem, text detail);
/* Ends the input, and returns the members of the outcome as JSON. */
text chat_close(chat *self);

#endif
