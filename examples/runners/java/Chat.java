import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of servers that
 * a rule is there for; `mockllm list quirks NAME` describes it.
 */
class Chat {
    private final StringBuilder text = new StringBuilder();
    private final StringBuilder reasoning = new StringBuilder();
    private final StringBuilder refusal = new StringBuilder();
    private String id = "";
    private String model = "";
    private String finish = "";
    private final List<Call> calls = new ArrayList<>();
    private Call last; // the call that the last fragment belongs to
    private Map<String, Object> usage;
    private final List<Object> errors = new ArrayList<>();
    private final Set<Object> opaque = new LinkedHashSet<>(); // to be sent back unchanged
    private boolean complete;
    private boolean failed;

    /** A call while its fragments arrive. */
    private static class Call {
        final long position;
        final Long index; // null if the server sends none
        String id = "";
        String name = "";
        final StringBuilder arguments = new StringBuilder();

        Call(long position, Long index) {
            this.position = position;
            this.index = index;
        }
    }

    void feed(String event, Object payload) {
        if (failed) {
            return;
        }
        Map<String, Object> chunk = Json.object(payload);
        id = first(id, Json.string(chunk.get("id")));
        model = first(model, Json.string(chunk.get("model")));
        boolean bare = event.equals("error") || "error".equals(chunk.get("object"));
        Object error = chunk.get("error");
        if (isEmpty(error)) {
            error = bare ? payload : null; // [err-event-line]
        }
        for (Object item : Json.list(chunk.get("choices"))) {
            Map<String, Object> choice = Json.object(item);
            Long index = Json.count(choice.get("index"));
            if (index == null || index == 0) { // the request has n=1 [chat-n-choices]
                choice(choice, error != null);
            }
        }
        Object usage = chunk.get("usage");
        count(Json.object(usage == null ? Json.object(chunk.get("x_groq")).get("usage") : usage));
        if (error != null) {
            fail(message(error));
        }
    }

    private void choice(Map<String, Object> choice, boolean failing) {
        // The delta first: the chunk with the finish may have one, and more deltas may follow it
        // [chat-finish-with-last-delta, chat-delta-after-finish].
        Map<String, Object> delta = Json.object(choice.get("delta"));
        String[] parts = parts(delta.get("content"));
        String summary = "";
        for (Object item : Json.list(delta.get("reasoning_details"))) {
            Map<String, Object> detail = Json.object(item);
            summary += first(Json.string(detail.get("text")), Json.string(detail.get("summary")));
            keep(detail.get("signature"));
            keep(detail.get("data"));
        }
        // Several fields repeat each other [chat-reasoning-fields].
        reasoning.append(first(parts[0], Json.string(delta.get("reasoning_content")),
            Json.string(delta.get("reasoning")), summary));
        text.append(parts[1]);
        refusal.append(Json.string(delta.get("refusal")));
        for (Object item : Json.list(delta.get("tool_calls"))) {
            Map<String, Object> entry = Json.object(item);
            if (!entry.containsKey("custom") || entry.containsKey("function")) {
                fragment(entry);
            }
        }
        String reason = Json.string(choice.get("finish_reason"));
        if (!reason.isEmpty() && !failing) {
            finish = first(finish, reason); // the first one counts [chat-finish-twice]
            complete = true;
        }
    }

    /** Adds a fragment to its call. Null and "" mean absent, in every field. */
    private void fragment(Map<String, Object> entry) {
        Map<String, Object> function = Json.object(entry.get("function"));
        Long index = Json.count(entry.get("index"));
        String callId = Json.string(entry.get("id"));
        String name = Json.string(function.get("name"));
        Call call = find(index, callId, name);
        if (call == null) {
            call = new Call(index == null ? calls.size() : index, index);
            calls.add(call);
        }
        last = call;
        call.id = first(call.id, callId); // the first id stays [chat-id-new-every-chunk]
        if (!name.equals(call.name)) { // the same name again is a repetition [chat-name-repeated]
            call.name += name; // another one is its next fragment [chat-name-split]
        }
        Object arguments = function.get("arguments");
        boolean whole = arguments instanceof Map || arguments instanceof List;
        call.arguments.append(whole ? Json.write(arguments) : Json.string(arguments));
        Map<String, Object> google = Json.object(Json.object(entry.get("extra_content")).get("google"));
        keep(google.get("thought_signature"));
    }

    /** The call that a fragment continues; null if it begins a new one. */
    private Call find(Long index, String callId, String name) {
        Call latest = null;
        Call known = null;
        for (Call call : calls) {
            if (index == null || index.equals(call.index)) {
                latest = call;
                known = !callId.isEmpty() && call.id.equals(callId) ? call : known;
            }
        }
        if (known != null || latest == null) {
            return known;
        }
        latest = index == null ? last : latest;
        boolean isNew = false;
        if (!callId.isEmpty() && !latest.id.isEmpty()) {
            // Servers give all calls the index 0 [chat-index-all-zero], leave it out
            // [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk].
            isNew = !name.isEmpty() || index == null;
        } else if (!name.isEmpty() && !latest.name.isEmpty()) {
            isNew = index == null || !name.equals(latest.name) && latest.arguments.length() > 0;
        }
        return isNew ? null : latest;
    }

    /** Takes the usage. Each is a total, so the last one counts; null does not erase it. */
    private void count(Map<String, Object> found) {
        Long input = Json.count(found.get("prompt_tokens"));
        Long output = Json.count(found.get("completion_tokens"));
        if (input != null || output != null) {
            usage = Json.map("input", input, "output", output,
                "reasoning", count(found, "completion_tokens_details", "reasoning_tokens"),
                "cached", count(found, "prompt_tokens_details", "cached_tokens"));
        }
    }

    private static Long count(Map<String, Object> usage, String details, String name) {
        return Json.count(Json.object(usage.get(details)).get(name));
    }

    /** Keeps what has to be sent back unchanged, such as a signature, once. */
    private void keep(Object value) {
        if (!Json.string(value).isEmpty()) {
            opaque.add(value);
        }
    }

    /** Ends the answer with an error: there is no finish, and what follows is ignored. */
    void fail(String message) {
        if (!failed) {
            failed = true;
            finish = "";
            errors.add(message);
        }
    }

    /**
     * Ends the input, and returns the outcome. Only an answer that is complete has calls: if it was
     * cut, their arguments may be incomplete even if they are JSON.
     */
    Map<String, Object> close() {
        if (!complete) {
            fail("the stream was cut: it ended without a finish_reason");
        }
        List<Object> good = new ArrayList<>();
        calls.sort(Comparator.comparingLong(call -> call.position));
        for (int number = 0; number < calls.size() && !failed; number++) {
            Call call = calls.get(number);
            String problem = problem(call);
            if (!problem.isEmpty()) {
                errors.add("call %d (%s, %s) %s".formatted(number, call.name, call.id, problem));
                continue;
            }
            String arguments = call.arguments.toString();
            good.add(Json.map("id", first(call.id, unusedId(number)), "name", call.name,
                "arguments", first(arguments, "{}"), "raw_arguments", arguments));
        }
        return Json.map("text", text.toString(), "reasoning", reasoning.toString(),
            "refusal", refusal.toString(), "role", "assistant", "finish", orNull(finish),
            "tool_calls", good, "usage", usage, "errors", errors, "crash", null,
            "opaque", new ArrayList<>(opaque), "model", orNull(model), "response_id", orNull(id));
    }

    /**
     * Why a call must not run; "" if it may. Broken arguments are not repaired: that would be to
     * guess what the tool should do.
     */
    private static String problem(Call call) {
        if (call.name.isEmpty()) {
            return "never got a name";
        }
        if (call.id.equals("null") || call.name.equals("null")) {
            return "has the text null for an id or a name";
        }
        try {
            String text = call.arguments.toString();
            if (text.isEmpty() || Json.parse(text) instanceof Map) { // no text: no arguments
                return "";
            }
        } catch (Json.Malformed error) {
            // described below
        }
        return "has arguments that are no JSON object: " + excerpt(call.arguments.toString());
    }

    /** An id for a call that got none, the same each time. */
    private String unusedId(int number) {
        String[] found = {"call_" + number};
        while (calls.stream().anyMatch(call -> call.id.equals(found[0]))) {
            found[0] += "_";
        }
        return found[0];
    }

    /** The reasoning and the text of a content, which may be a list of parts [chat-content-parts]. */
    private static String[] parts(Object content) {
        String[] found = {"", Json.string(content)};
        for (Object item : Json.list(content)) {
            Map<String, Object> part = Json.object(item);
            if ("thinking".equals(part.get("type"))) {
                found[0] += parts(part.get("thinking"))[1];
            } else {
                found[1] += Json.string(part.get("text"));
            }
        }
        return found;
    }

    /** The message of an error in the shape of any service, with its code or type. */
    private static String message(Object error) {
        while (!isEmpty(Json.object(error).get("error"))) {
            error = Json.object(error).get("error");
        }
        Map<String, Object> found = Json.object(error);
        String message = first(Json.string(found.get("message")), Json.string(error), Json.write(error));
        for (String key : List.of("code", "status", "type")) {
            if (!isEmpty(found.get(key))) {
                return message + " (" + found.get(key) + ")";
            }
        }
        return message;
    }

    private static boolean isEmpty(Object value) {
        return value == null || value.equals("") || value.equals(Map.of()) || value.equals(false);
    }

    private static String first(String... values) {
        for (String value : values) {
            if (!value.isEmpty()) {
                return value;
            }
        }
        return "";
    }

    private static String orNull(String value) {
        return value.isEmpty() ? null : value;
    }

    static String excerpt(String text) {
        return text.length() > 200 ? text.substring(0, 200) : text;
    }
}
