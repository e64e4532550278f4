/* Reads JSON. In a real client, your JSON library is in its place. */
#ifndef JSON_H
#define JSON_H

#include "text.h"

typedef enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json {
    json_kind kind;
    text text; /* of a string, its value; of a number, as it is written */
    text key;  /* of a member of an object */
    struct json *first, *last, *next;
} json;

/* The value of a text, NULL if it is not one whole JSON value. */
const json *json_parse(text source);

/* A server may send null, or another type, for every field: these are empty for all else, and
 * never NULL. */
const json *json_get(const json *object, const char *key);
text json_text(const json *value);
/* Whether it is a whole number, also one written as 7.0. */
bool json_count(const json *value, long *count);
/* Whether it is null, false, "" or {}. */
bool json_is_empty(const json *value);

void json_write(text *out, const json *value);
void json_write_text(text *out, text value);

#endif
