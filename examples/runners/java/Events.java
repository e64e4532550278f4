import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Turns the bytes of a stream into events: JSON in server-sent events, or plain JSON.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
class Events {
    private final Chat answer;
    private final ByteArrayOutputStream partial = new ByteArrayOutputStream(); // of a line
    private boolean started;
    private boolean afterCr;
    private boolean ended;
    private String event = "";
    private List<String> data = new ArrayList<>();
    private final List<String> body = new ArrayList<>();

    Events(Chat answer) {
        this.answer = answer;
    }

    /**
     * Takes one read, which may end anywhere, also within a character or a line end. Lines are
     * split as bytes: in UTF-8 the bytes of CR and LF are in no other character.
     */
    void feed(byte[] read) {
        int start = 0;
        for (int at = 0; at < read.length; at++) {
            if (read[at] != '\n' && read[at] != '\r') {
                afterCr = false;
                continue;
            }
            partial.write(read, start, at - start);
            start = at + 1;
            if (read[at] == '\n' && afterCr) {
                afterCr = false; // the other half of a CRLF
            } else {
                afterCr = read[at] == '\r';
                endLine();
            }
        }
        partial.write(read, start, read.length - start);
    }

    private void endLine() {
        String text = partial.toString(UTF_8);
        partial.reset();
        if (!started && text.startsWith("\ufeff")) {
            text = text.substring(1); // the byte order mark
        }
        started = true;
        if (!ended) {
            line(text);
        }
    }

    private void line(String line) {
        if (line.isEmpty()) {
            dispatch();
            return;
        }
        int colon = line.indexOf(':');
        String name = colon < 0 ? line : line.substring(0, colon);
        String value = colon < 0 ? "" : line.substring(colon + 1);
        if (value.startsWith(" ")) {
            value = value.substring(1);
        }
        switch (name) {
            case "data" -> data.add(value);
            case "event" -> event = value;
            case "", "id", "retry" -> { }
            default -> {
                if (!body.isEmpty() || line.startsWith("{") || line.startsWith("[")) {
                    body.add(line); // an error or an answer as plain JSON
                }
            }
        }
    }

    /** Passes an event on, which a blank line ends. */
    private void dispatch() {
        String text = String.join("\n", data);
        String name = event;
        data = new ArrayList<>();
        event = "";
        if (text.isEmpty()) {
            return;
        }
        if (text.stripTrailing().equals("[DONE]")) {
            ended = true;
            return;
        }
        try {
            answer.feed(name, Json.parse(text));
        } catch (Json.Malformed error) {
            // To leave it out would lose a part of the answer silently.
            answer.fail("the data of an event are no JSON: " + Chat.excerpt(text));
            ended = true;
        }
    }

    /** Ends the input. The last event may lack its blank line if its JSON is complete. */
    void close() {
        if (partial.size() > 0) {
            endLine();
        }
        if (!ended) {
            dispatch();
        }
        if (ended || body.isEmpty()) {
            return;
        }
        try {
            Object value = Json.parse(String.join("\n", body));
            for (Object payload : value instanceof List<?> several ? several : List.of(value)) {
                answer.feed("", payload);
            }
        } catch (Json.Malformed error) {
            return; // it was cut, so the answer has no end
        }
    }
}
