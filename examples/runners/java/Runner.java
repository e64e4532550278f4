import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import java.util.List;
import java.util.Map;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Runs the client in Client.java for `mockllm check`: reads a case a line, answers in a line. The
 * protocol is described in docs/runner-protocol.md. Java 17 or newer, no dependencies.
 */
class Runner {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        var out = new PrintStream(System.out, true, UTF_8);
        Map<String, Object> hello = Json.object(Json.parse(in.readLine()));
        boolean known = List.of("bytes", "payloads").contains(hello.get("level"));
        if (!known || !Client.has(Json.string(hello.get("api")))) {
            System.err.println("this runner has no " + hello.get("api") + " at level " + hello.get("level"));
            System.exit(2);
        }
        out.println(Json.write(Json.map(
            "mockllm", 1L, "client", Client.INFO, "unsupported", List.of(), "intermediate", false)));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> job = Json.object(Json.parse(line));
            Map<String, Object> answer = outcome(new Client(), Json.list(job.get("feed")));
            answer.put("id", job.get("id"));
            out.println(Json.write(answer));
        }
    }

    /** An item of the feed is base64 at level bytes, and [event, payload] at level payloads. */
    static Map<String, Object> outcome(Client client, List<Object> feed) {
        try {
            for (Object item : feed) {
                if (item instanceof String base64) {
                    client.feedBytes(Base64.getDecoder().decode(base64));
                } else {
                    List<Object> pair = Json.list(item);
                    client.feedEvent(Json.string(pair.get(0)), pair.get(1));
                }
            }
            return client.close();
        } catch (RuntimeException | StackOverflowError error) {
            StackTraceElement frame = error.getStackTrace()[0];
            String raised = "%s:%d in %s.%s".formatted(frame.getFileName(), frame.getLineNumber(),
                frame.getClassName(), frame.getMethodName());
            return Json.map("crash", Json.map("message", error.toString(), "raised", raised));
        }
    }
}
