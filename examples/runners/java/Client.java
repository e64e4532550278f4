import java.util.Map;

/**
 * The client under test: replace what is here by your client, and keep Runner.java.
 *
 * A client gets the answer of a model as it comes from the network, in reads of bytes (feedBytes),
 * or as decoded events (feedEvent). close ends the input and returns what the client made of the
 * answer, with the keys of the protocol of runners.
 */
class Client {
    static final Map<String, Object> INFO = Json.map(
        "name", "example-java",
        "version", "1.0",
        "language", "java",
        "entry_point", "Client.feedBytes()",
        "adapter", "Runner.java");

    private final Chat answer = new Chat();
    private final Events events = new Events(answer);

    static boolean has(String api) {
        return api.equals("chat");
    }

    void feedBytes(byte[] data) {
        events.feed(data);
    }

    void feedEvent(String event, Object payload) {
        answer.feed(event, payload);
    }

    Map<String, Object> close() {
        events.close();
        return answer.close();
    }
}
