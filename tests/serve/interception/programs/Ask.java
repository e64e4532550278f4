import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Ask {
  static final String BODY = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("HttpClient")) {
      var request = HttpRequest.newBuilder(URI.create(arguments[1]))
          .header("content-type", "application/json")
          .POST(HttpRequest.BodyPublishers.ofString(BODY)).build();
      var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
      System.out.println(answer.statusCode() + " " + answer.uri());
    } else {
      var connection = (HttpURLConnection) new URL(arguments[1]).openConnection();
      connection.setDoOutput(true);
      connection.setRequestProperty("content-type", "application/json");
      connection.getOutputStream().write(BODY.getBytes());
      System.out.println(connection.getResponseCode() + " " + connection.getURL());
    }
  }
}
