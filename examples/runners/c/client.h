/* The client under test: replace what is in client.c by your client, and keep runner.c.
 *
 * A client gets the answer of a model as it comes from the network, in reads of bytes
 * (client_feed_bytes), or as decoded events (client_feed_event). client_close ends the input and
 * returns what the client made of the answer: the members of a JSON object, without its braces,
 * with the keys of the protocol of runners. */
#ifndef CLIENT_H
#define CLIENT_H

#include "json.h"

#define CLIENT_INFO \
    "{\"name\":\"example-c\",\"version\":\"1.0\",\"language\":\"c\"," \
    "\"entry_point\":\"client_feed_bytes()\",\"adapter\":\"runner.c\"}"

typedef struct client client;

bool client_has(text api);
/* A new client for one answer. */
client *client_new(void);
void client_feed_bytes(client *self, text read);
void client_feed_event(client *self, text event, const json *payload);
text client_close(client *self);

#endif
