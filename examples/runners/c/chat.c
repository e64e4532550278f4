#include "chat.h"

static void set_once(text *field, text value) {
    if (field->length == 0)
        add_text(field, value);
}

static void add_item(text *list, text value) {
    add_string(list, list->length > 0 ? "," : "");
    json_write_text(list, value);
}

/* Keeps what has to be sent back unchanged, such as a signature, once. */
static void keep(chat *self, text value) {
    text quoted = {0};
    json_write_text(&quoted, value);
    if (value.length > 0 && (self->opaque.length == 0 || !strstr(self->opaque.data, quoted.data)))
        add_item(&self->opaque, value);
}

/* The call that a fragment continues; NULL if it begins a new one. */
static call *find(chat *self, const long *index, text id, text name) {
    call *last = NULL, *known = NULL;
    for (call *one = self->calls; one != NULL; one = one->next) {
        if (index == NULL || (one->has_index && one->index == *index)) {
            last = one;
            known = id.length > 0 && same(one->id, id) ? one : known;
        }
    }
    if (known != NULL || last == NULL)
        return known;
    last = index == NULL ? self->last : last;
    bool is_new = false;
    if (id.length > 0 && last->id.length > 0)
        /* Servers give all calls the index 0 [chat-index-all-zero], leave it out
         * [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk]. */
        is_new = name.length > 0 || index == NULL;
    else if (name.length > 0 && last->name.length > 0)
        is_new = index == NULL || (!same(name, last->name) && last->arguments.length > 0);
    return is_new ? NULL : last;
}

static call *new_call(chat *self, const long *index) {
    call *found = take(sizeof *found), **end = &self->calls;
    found->has_index = index != NULL;
    found->index = found->position = index ? *index : self->count;
    self->count++;
    while (*end != NULL)
        end = &(*end)->next;
    return *end = found;
}

/* Adds a fragment to its call. Null and "" mean absent, in every field. */
static void fragment(chat *self, const json *entry) {
    const json *function = json_get(entry, "function"), *arguments = json_get(function, "arguments");
    text id = json_text(json_get(entry, "id")), name = json_text(json_get(function, "name"));
    long number;
    const long *index = json_count(json_get(entry, "index"), &number) ? &number : NULL;
    call *found = find(self, index, id, name);
    self->last = found = found ? found : new_call(self, index);
    set_once(&found->id, id); /* the first id stays [chat-id-new-every-chunk] */
    if (!same(found->name, name)) /* the same name again is a repetition [chat-name-repeated] */
        add_text(&found->name, name); /* another one is its next fragment [chat-name-split] */
    if (arguments->kind == JSON_OBJECT || arguments->kind == JSON_ARRAY)
        json_write(&found->arguments, arguments); /* [chat-args-object] */
    else
        add_text(&found->arguments, json_text(arguments));
    const json *google = json_get(json_get(entry, "extra_content"), "google");
    keep(self, json_text(json_get(google, "thought_signature")));
}

/* The reasoning and the text of a content, which may be a list of parts [chat-content-parts]. */
static void parts(const json *content, text *thoughts, text *texts) {
    add_text(texts, json_text(content));
    for (const json *part = content->first; part != NULL; part = part->next) {
        text ignored = {0};
        if (is(json_text(json_get(part, "type")), "thinking"))
            parts(json_get(part, "thinking"), &ignored, thoughts);
        else
            add_text(texts, json_text(json_get(part, "text")));
    }
}

static void add_delta(chat *self, const json *delta) {
    text reasoning = {0}, summary = {0};
    parts(json_get(delta, "content"), &reasoning, &self->text);
    for (const json *one = json_get(delta, "reasoning_details")->first; one; one = one->next) {
        add_text(&summary, either(json_text(json_get(one, "text")), json_text(json_get(one, "summary"))));
        keep(self, json_text(json_get(one, "signature")));
        keep(self, json_text(json_get(one, "data")));
    }
    /* Several fields repeat each other [chat-reasoning-fields]. */
    text other = either(json_text(json_get(delta, "reasoning")), summary);
    other = either(json_text(json_get(delta, "reasoning_content")), other);
    add_text(&self->reasoning, either(reasoning, other));
    add_text(&self->refusal, json_text(json_get(delta, "refusal")));
    for (const json *entry = json_get(delta, "tool_calls")->first; entry; entry = entry->next)
        if (json_is_empty(json_get(entry, "custom")) || !json_is_empty(json_get(entry, "function")))
            fragment(self, entry);
}

/* Takes the usage. Each is a total, so the last one counts; null does not erase it. */
static void count(chat *self, const json *usage) {
    const json *output = json_get(usage, "completion_tokens_details");
    const json *input = json_get(usage, "prompt_tokens_details");
    const struct { const char *name; const json *value; } counts[] = {
        {"{\"input\":", json_get(usage, "prompt_tokens")},
        {",\"output\":", json_get(usage, "completion_tokens")},
        {",\"reasoning\":", json_get(output, "reasoning_tokens")},
        {",\"cached\":", json_get(input, "cached_tokens")},
    };
    text found = {0};
    long number;
    if (!json_count(counts[0].value, &number) && !json_count(counts[1].value, &number))
        return;
    for (int at = 0; at < 4; at++) {
        add_string(&found, counts[at].name);
        if (json_count(counts[at].value, &number))
            add_number(&found, number);
        else
            add_string(&found, "null");
    }
    add_string(&found, "}");
    self->usage = found;
}

/* The message of an error in the shape of any service, with its code or type. */
static text message(const json *error) {
    const char *keys[] = {"code", "status", "type"};
    text found = {0}, whole = {0};
    while (!json_is_empty(json_get(error, "error")))
        error = json_get(error, "error");
    json_write(&whole, error);
    add_text(&found, either(either(json_text(json_get(error, "message")), json_text(error)), whole));
    for (int at = 0; at < 3; at++) {
        const json *kind = json_get(error, keys[at]);
        if (json_is_empty(kind))
            continue;
        add_string(&found, " (");
        add_text(&found, kind->text);
        add_string(&found, ")");
        break;
    }
    return found;
}

void chat_feed(chat *self, text event, const json *payload) {
    if (self->failed)
        return;
    set_once(&self->id, json_text(json_get(payload, "id")));
    set_once(&self->model, json_text(json_get(payload, "model")));
    const json *error = json_get(payload, "error");
    bool bare = is(event, "error") || is(json_text(json_get(payload, "object")), "error");
    if (json_is_empty(error))
        error = bare ? payload : NULL; /* [err-event-line] */
    for (const json *choice = json_get(payload, "choices")->first; choice; choice = choice->next) {
        long index = 0;
        if (json_count(json_get(choice, "index"), &index) && index != 0)
            continue; /* the request has n=1 [chat-n-choices] */
        /* The delta first: the chunk with the finish may have one, and more deltas may follow it
         * [chat-finish-with-last-delta, chat-delta-after-finish]. */
        add_delta(self, json_get(choice, "delta"));
        text finish = json_text(json_get(choice, "finish_reason"));
        if (finish.length > 0 && error == NULL) {
            set_once(&self->finish, finish); /* the first one counts [chat-finish-twice] */
            self->complete = true;
        }
    }
    const json *usage = json_get(payload, "usage");
    count(self, json_is_empty(usage) ? json_get(json_get(payload, "x_groq"), "usage") : usage);
    if (error != NULL)
        chat_fail(self, "", message(error));
}

void chat_fail(chat *self, const char *problem, text detail) {
    if (self->failed)
        return;
    text whole = {0};
    add_string(&whole, problem);
    add_text(&whole, detail);
    self->failed = true;
    self->finish = (text){0};
    add_item(&self->errors, whole);
}

/* Why a call must not run; NULL if it may. Broken arguments are not repaired: that would be to
 * guess what the tool should do. */
static const char *problem_of(const call *one) {
    if (one->name.length == 0)
        return "never got a name ";
    if (is(one->id, "null") || is(one->name, "null"))
        return "has the text null for an id or a name ";
    const json *arguments = json_parse(one->arguments);
    if (one->arguments.length > 0 && (arguments == NULL || arguments->kind != JSON_OBJECT))
        return "has arguments that are no JSON object: ";
    return NULL;
}

/* The error for such a call, which names it. */
static text error_of(const call *one, const char *problem) {
    text found = {0};
    add_string(&found, "the call ");
    add_text(&found, one->name);
    add_string(&found, " ");
    add_text(&found, one->id);
    add_string(&found, " ");
    add_string(&found, problem);
    add_text(&found, excerpt(one->arguments));
    return found;
}

/* An id for a call that got none, the same each time. */
static text unused_id(const chat *self, long number) {
    text id = {0};
    add_string(&id, "call_");
    add_number(&id, number);
    for (const call *one = self->calls; one != NULL;)
        if (same(one->id, id)) {
            add_string(&id, "_");
            one = self->calls;
        } else {
            one = one->next;
        }
    return id;
}

static void write_member(text *out, const char *name, text value) {
    add_string(out, name);
    json_write_text(out, value);
}

static void write_call(text *out, const call *one, text id) {
    text none = {"{}", 2, 0};
    add_string(out, out->length > 0 ? "," : "");
    write_member(out, "{\"id\":", id);
    write_member(out, ",\"name\":", one->name);
    write_member(out, ",\"arguments\":", either(one->arguments, none));
    write_member(out, ",\"raw_arguments\":", one->arguments);
    add_string(out, "}");
}

/* Sorts the calls by position; those with the same one keep their order. */
static call *sorted(call *rest) {
    call *calls = NULL;
    while (rest != NULL) {
        call *one = rest, **at = &calls;
        rest = rest->next;
        while (*at != NULL && (*at)->position <= one->position)
            at = &(*at)->next;
        one->next = *at;
        *at = one;
    }
    return calls;
}

static void write_or_null(text *out, const char *name, text value) {
    if (value.length > 0) {
        write_member(out, name, value);
    } else {
        add_string(out, name);
        add_string(out, "null");
    }
}

text chat_close(chat *self) {
    text out = {0}, good = {0};
    long number = 0;
    if (!self->complete)
        chat_fail(self, "the stream was cut: it ended without a finish_reason", (text){0});
    /* Only an answer that is complete has calls: if it was cut, their arguments may be incomplete
     * even if they are JSON. */
    self->calls = self->failed ? NULL : sorted(self->calls);
    for (const call *one = self->calls; one != NULL; one = one->next, number++) {
        const char *problem = problem_of(one);
        if (problem == NULL) {
            write_call(&good, one, either(one->id, unused_id(self, number)));
        } else {
            add_item(&self->errors, error_of(one, problem));
        }
    }
    write_member(&out, "\"text\":", self->text);
    write_member(&out, ",\"reasoning\":", self->reasoning);
    write_member(&out, ",\"refusal\":", self->refusal);
    write_or_null(&out, ",\"finish\":", self->finish);
    write_or_null(&out, ",\"model\":", self->model);
    write_or_null(&out, ",\"response_id\":", self->id);
    const struct { const char *name; text value; } rest[] = {
        {",\"role\":\"assistant\",\"crash\":null,\"tool_calls\":[", good},
        {"],\"errors\":[", self->errors},
        {"],\"opaque\":[", self->opaque},
        {"],\"usage\":", either(self->usage, (text){"null", 4, 0})},
    };
    for (int at = 0; at < 4; at++) {
        add_string(&out, rest[at].name);
        add_text(&out, rest[at].value);
    }
    return out;
}
