#include "text.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

static block *taken;

void *take(size_t size) {
    block *new = calloc(1, sizeof(block) + size);
    if (new == NULL) {
        fprintf(stderr, "runner: out of memory\n");
        exit(2);
    }
    new->next = taken;
    taken = new;
    return new->data;
}

void release_all(void) {
    while (taken != NULL) {
        block *next = taken->next;
        free(taken);
        taken = next;
    }
}

void add(text *to, const char *data, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = 2 * (to->length + length + 1);
        char *wider = take(to->room);
        if (to->length > 0)
            memcpy(wider, to->data, to->length);
        to->data = wider;
    }
    if (length > 0)
        memcpy(to->data + to->length, data, length);
    to->length += length;
    to->data[to->length] = 0;
}

void add_text(text *to, text more) { add(to, more.data, more.length); }

void add_string(text *to, const char *more) { add(to, more, strlen(more)); }

void add_number(text *to, long number) {
    char digits[32];
    snprintf(digits, sizeof digits, "%ld", number);
    add_string(to, digits);
}

bool is(text one, const char *other) {
    return one.length == strlen(other) && memcmp(one.data ? one.data : "", other, one.length) == 0;
}

bool same(text one, text other) {
    return one.length == other.length && (one.length == 0 || memcmp(one.data, other.data, one.length) == 0);
}

text either(text one, text other) { return one.length > 0 ? one : other; }

text excerpt(text whole) {
    size_t length = whole.length < 200 ? whole.length : 200;
    while (length < whole.length && length > 0 && (whole.data[length] & 0xc0) == 0x80)
        length--; /* not within a character */
    return (text){whole.data, length, 0};
}
