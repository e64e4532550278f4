#include "json.h"
#include <stdlib.h>

#define MAX_DEPTH 500

typedef struct {
    const char *at, *end;
} reader;

static json *value(reader *in, int depth);

const json *json_parse(text source) {
    reader in = {source.data, source.data + source.length};
    json *found = source.length > 0 ? value(&in, 0) : NULL;
    while (in.at < in.end && strchr(" \t\r\n", *in.at) && *in.at)
        in.at++;
    return in.at == in.end ? found : NULL;
}

/* Whether the next character, after space, is this one; it is then taken. */
static bool next_is(reader *in, char wanted) {
    while (in->at < in->end && *in->at && strchr(" \t\r\n", *in->at))
        in->at++;
    bool found = in->at < in->end && *in->at == wanted;
    in->at += found;
    return found;
}

static bool hex(reader *in, unsigned *code) {
    *code = 0;
    for (int digit = 0; digit < 4; digit++, in->at++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *found = in->at < in->end && *in->at ? strchr(digits, *in->at) : NULL;
        if (found == NULL)
            return false;
        *code = *code * 16 + (unsigned)(found - digits < 16 ? found - digits : found - digits - 6);
    }
    return true;
}

static void add_code_point(text *out, unsigned code) {
    char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t at = length; at-- > 1; code >>= 6)
        bytes[at] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[length] | code);
    add(out, bytes, length);
}

/* One escape, or two that are a surrogate pair. */
static bool escape(reader *in, text *out) {
    const char *kinds = "\"\\/bfnrt", *values = "\"\\/\b\f\n\r\t";
    if (in->at == in->end)
        return false;
    char kind = *in->at++;
    unsigned high, low;
    if (kind != 'u') {
        const char *found = kind ? strchr(kinds, kind) : NULL;
        if (found != NULL)
            add(out, values + (found - kinds), 1);
        return found != NULL;
    }
    if (!hex(in, &high))
        return false;
    if (high >= 0xd800 && high < 0xdc00 && in->end - in->at >= 6 && in->at[0] == '\\' && in->at[1] == 'u') {
        reader pair = {in->at + 2, in->end};
        if (hex(&pair, &low) && low >= 0xdc00 && low < 0xe000) {
            in->at = pair.at;
            high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    add_code_point(out, high >= 0xd800 && high < 0xe000 ? 0xfffd : high);
    return true;
}

/* The rest of a string, after its quote. */
static bool string(reader *in, text *out) {
    add_string(out, "");
    while (in->at < in->end && (unsigned char)*in->at >= ' ') {
        const char *start = in->at;
        while (in->at < in->end && (unsigned char)*in->at >= ' ' && *in->at != '"' && *in->at != '\\')
            in->at++;
        add(out, start, (size_t)(in->at - start));
        if (in->at == in->end || (unsigned char)*in->at < ' ')
            return false;
        if (*in->at++ == '"')
            return true;
        if (!escape(in, out))
            return false;
    }
    return false;
}

static bool digits(const char **at) {
    const char *start = *at;
    while (**at >= '0' && **at <= '9')
        ++*at;
    return *at > start;
}

static bool is_number(const char *word) {
    word += *word == '-';
    if (*word == '0' ? (word++, false) : !digits(&word))
        return false;
    if (*word == '.' && (word++, !digits(&word)))
        return false;
    if (*word == 'e' || *word == 'E') {
        word++;
        word += *word == '+' || *word == '-';
        if (!digits(&word))
            return false;
    }
    return *word == 0;
}

static bool word(reader *in, json *found) {
    const char *start = in->at;
    while (in->at < in->end && *in->at && !strchr(",]} \t\r\n", *in->at))
        in->at++;
    add(&found->text, start, (size_t)(in->at - start));
    bool is_word = is(found->text, "null") || is(found->text, "true") || is(found->text, "false");
    found->kind = !is_word                   ? JSON_NUMBER
                  : *found->text.data == 'n' ? JSON_NULL
                  : *found->text.data == 't' ? JSON_TRUE
                                             : JSON_FALSE;
    return is_word || is_number(found->text.data);
}

/* The members of an object, or the elements of an array. */
static bool inside(reader *in, json *found, int depth) {
    bool object = found->kind == JSON_OBJECT;
    if (next_is(in, object ? '}' : ']'))
        return true;
    do {
        text key = {0};
        if (object && !(next_is(in, '"') && string(in, &key) && next_is(in, ':')))
            return false;
        json *item = value(in, depth + 1);
        if (item == NULL)
            return false;
        item->key = key;
        if (found->last == NULL)
            found->first = item;
        else
            found->last->next = item;
        found->last = item;
    } while (next_is(in, ','));
    return next_is(in, object ? '}' : ']');
}

static json *value(reader *in, int depth) {
    json *found = take(sizeof *found);
    bool right;
    if (depth > MAX_DEPTH)
        return NULL;
    if (next_is(in, '"')) {
        found->kind = JSON_STRING;
        right = string(in, &found->text);
    } else if (next_is(in, '{')) {
        found->kind = JSON_OBJECT;
        right = inside(in, found, depth);
    } else if (next_is(in, '[')) {
        found->kind = JSON_ARRAY;
        right = inside(in, found, depth);
    } else {
        right = word(in, found);
    }
    return right ? found : NULL;
}

static const json NOTHING = {0};

const json *json_get(const json *object, const char *key) {
    const json *found = &NOTHING;
    if (object != NULL && object->kind == JSON_OBJECT)
        for (const json *member = object->first; member != NULL; member = member->next)
            if (is(member->key, key))
                found = member;
    return found;
}

text json_text(const json *value) { return value->kind == JSON_STRING ? value->text : (text){"", 0, 0}; }

bool json_count(const json *value, long *count) {
    double number = value->kind == JSON_NUMBER ? strtod(value->text.data, NULL) : 0.5;
    if (!(number > -1e15 && number < 1e15) || number != (double)(long)number)
        return false;
    *count = (long)number;
    return true;
}

bool json_is_empty(const json *value) {
    return value->kind == JSON_NULL || value->kind == JSON_FALSE ||
           (value->kind == JSON_STRING && value->text.length == 0) ||
           (value->kind == JSON_OBJECT && value->first == NULL);
}

void json_write_text(text *out, text value) {
    add_string(out, "\"");
    for (size_t at = 0; at < value.length; at++) {
        unsigned char byte = (unsigned char)value.data[at];
        const char *digits = "0123456789abcdef";
        if (byte == '"' || byte == '\\')
            add_string(out, "\\");
        if (byte < ' ')
            add(out, (char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6);
        else
            add(out, &value.data[at], 1);
    }
    add_string(out, "\"");
}

void json_write(text *out, const json *value) {
    bool object = value->kind == JSON_OBJECT;
    if (value->kind == JSON_STRING) {
        json_write_text(out, value->text);
    } else if (!object && value->kind != JSON_ARRAY) {
        add_text(out, value->text);
    } else {
        add_string(out, object ? "{" : "[");
        for (const json *item = value->first; item != NULL; item = item->next) {
            if (object) {
                json_write_text(out, item->key);
                add_string(out, ":");
            }
            json_write(out, item);
            add_string(out, item->next ? "," : "");
        }
        add_string(out, object ? "}" : "]");
    }
}
