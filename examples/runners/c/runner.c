/* Runs the client in client.c for `mockllm check`: reads a case a line, answers in a line. The
 * protocol is described in docs/runner-protocol.md. C11 and POSIX, no dependencies.
 *
 * A client that crashes takes this program with it; mockllm then starts it again, and reports the
 * crash for the case. */
#define _POSIX_C_SOURCE 200809L
#include "client.h"
#include <stdio.h>
#include <stdlib.h>

static text decode(text base64);

int main(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length = getline(&line, &room, stdin);
    const json *hello = length < 0 ? NULL : json_parse((text){line, (size_t)length, 0});
    text level = json_text(json_get(hello, "level"));
    bool bytes = is(level, "bytes");
    if (!client_has(json_text(json_get(hello, "api"))) || !(bytes || is(level, "payloads"))) {
        fprintf(stderr, "this runner has only the API chat, at the levels bytes and payloads\n");
        return 2;
    }
    printf("{\"mockllm\":1,\"client\":%s,\"unsupported\":[],\"intermediate\":false}\n", CLIENT_INFO);
    for (fflush(stdout); (length = getline(&line, &room, stdin)) >= 0; fflush(stdout)) {
        const json *job = json_parse((text){line, (size_t)length, 0});
        client *answer = client_new();
        for (const json *item = json_get(job, "feed")->first; item != NULL; item = item->next) {
            if (bytes)
                client_feed_bytes(answer, decode(json_text(item)));
            else
                client_feed_event(answer, json_text(item->first), item->first->next);
        }
        text outcome = client_close(answer);
        printf("{\"id\":%s,%s}\n", json_get(job, "id")->text.data, outcome.data);
        release_all();
    }
    free(line);
    return 0;
}

static text decode(text base64) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    signed char values[256];
    memset(values, -1, sizeof values);
    for (int value = 0; value < 64; value++)
        values[(unsigned char)alphabet[value]] = (signed char)value;
    text found = {0};
    unsigned bits = 0;
    int count = 0;
    for (size_t at = 0; at < base64.length && values[(unsigned char)base64.data[at]] >= 0; at++) {
        bits = bits << 6 | (unsigned)values[(unsigned char)base64.data[at]];
        count += 6;
        if (count >= 8) {
            count -= 8;
            add(&found, &(char){(char)(bits >> count)}, 1);
        }
    }
    return found;
}
