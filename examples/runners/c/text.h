/* Texts that grow, and memory that is released after each case. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes, which may have zeros among them; a zero follows the last one. */
typedef struct {
    char *data;
    size_t length, room;
} text;

/* Zeroed memory until the next release_all. */
void *take(size_t size);
void release_all(void);

void add(text *to, const char *data, size_t length);
void add_text(text *to, text more);
void add_string(text *to, const char *more);
void add_number(text *to, long number);

bool is(text one, const char *other);
bool same(text one, text other);
/* The first one if it is not empty, otherwise the other. */
text either(text one, text other);
/* At most 200 bytes of it, for messages. */
text excerpt(text whole);

#endif
