import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads and writes JSON: objects are maps, arrays are lists, numbers are Long or Double. In a real
 * client, your JSON library is in its place.
 */
class Json {
    static class Malformed extends RuntimeException {
        Malformed(String message) {
            super(message);
        }
    }

    private static final int MAX_DEPTH = 500;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a text, which must be one whole JSON value. */
    static Object parse(String text) {
        Json reader = new Json(text);
        Object value = reader.value(0);
        reader.space();
        if (reader.at < text.length()) {
            throw reader.malformed();
        }
        return value;
    }

    private Malformed malformed() {
        return new Malformed("malformed JSON at character " + at);
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    /** Whether the next character, after space, is this one; it is then taken. */
    private boolean take(char wanted) {
        space();
        boolean found = at < text.length() && text.charAt(at) == wanted;
        at += found ? 1 : 0;
        return found;
    }

    private void need(char wanted) {
        if (!take(wanted)) {
            throw malformed();
        }
    }

    private Object value(int depth) {
        if (depth > MAX_DEPTH) {
            throw malformed();
        }
        if (take('{')) {
            return members(depth);
        }
        if (take('[')) {
            return elements(depth);
        }
        if (take('"')) {
            return rest();
        }
        int start = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        return switch (word) {
            case "true" -> true;
            case "false" -> false;
            case "null" -> null;
            default -> number(word);
        };
    }

    private Object number(String word) {
        if (!word.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            throw malformed();
        }
        boolean whole = word.length() < 19 && word.matches("-?[0-9]+");
        return whole ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
    }

    private Map<String, Object> members(int depth) {
        Map<String, Object> found = new LinkedHashMap<>();
        if (take('}')) {
            return found;
        }
        do {
            need('"');
            String key = rest();
            need(':');
            found.put(key, value(depth + 1));
        } while (take(','));
        need('}');
        return found;
    }

    private List<Object> elements(int depth) {
        List<Object> found = new ArrayList<>();
        if (take(']')) {
            return found;
        }
        do {
            found.add(value(depth + 1));
        } while (take(','));
        need(']');
        return found;
    }

    /** The rest of a string, after its quote. */
    private String rest() {
        StringBuilder found = new StringBuilder();
        while (at < text.length()) {
            char next = text.charAt(at++);
            if (next == '"') {
                return found.toString();
            }
            if (next < ' ') {
                break;
            }
            found.append(next == '\\' ? escaped() : next);
        }
        throw malformed();
    }

    private char escaped() {
        int kind = at < text.length() ? "\"\\/bfnrtu".indexOf(text.charAt(at++)) : -1;
        if (kind < 0) {
            throw malformed();
        }
        if (kind < 8) {
            return "\"\\/\b\f\n\r\t".charAt(kind);
        }
        String code = text.substring(at, Math.min(at + 4, text.length()));
        if (!code.matches("[0-9a-fA-F]{4}")) {
            throw malformed();
        }
        at += 4;
        return (char) Integer.parseInt(code, 16);
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof String text) {
            writeString(text, out);
        } else if (value instanceof Map<?, ?> members) {
            String before = "{";
            for (Map.Entry<?, ?> member : members.entrySet()) {
                out.append(before);
                writeString((String) member.getKey(), out);
                write(member.getValue(), out.append(':'));
                before = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> elements) {
            String before = "[";
            for (Object element : elements) {
                write(element, out.append(before));
                before = ",";
            }
            out.append(elements.isEmpty() ? "[]" : "]");
        } else {
            out.append(value); // a number, true, false or null
        }
    }

    private static void writeString(String text, StringBuilder out) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char next = text.charAt(at);
            if (next == '"' || next == '\\') {
                out.append('\\').append(next);
            } else if (next < ' ' || Character.isSurrogate(next)) {
                out.append(String.format("\\u%04x", (int) next));
            } else {
                out.append(next);
            }
        }
        out.append('"');
    }

    // A server may send null, or another type, for every field: these are empty for all else.

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : Map.of();
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return value instanceof List ? (List<Object>) value : List.of();
    }

    static String string(Object value) {
        return value instanceof String text ? text : "";
    }

    /** A whole number, also one written as 7.0, or null. */
    static Long count(Object value) {
        if (value instanceof Double number && number == Math.rint(number)) {
            return number.longValue();
        }
        return value instanceof Long number ? number : null;
    }

    /** A map of keys and values in turns; the values may be null. */
    static Map<String, Object> map(Object... keysAndValues) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (int at = 0; at < keysAndValues.length; at += 2) {
            found.put((String) keysAndValues[at], keysAndValues[at + 1]);
        }
        return found;
    }
}
