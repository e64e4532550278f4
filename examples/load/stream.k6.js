// Streams through a gateway: how much longer they take than they should, and whether every word
// arrives.
//
//   mockllm serve examples/load/scenarios.yaml
//   k6 run -e GATEWAY=http://GATEWAY --vus 500 --duration 60s examples/load/stream.k6.js
//
// k6 reads a stream to its end before the script sees it. So this measures the first byte and the
// whole; locustfile.py measures each event.
import { check } from "k6";
import http from "k6/http";
import { Trend } from "k6/metrics";

const url = (__ENV.GATEWAY || "http://127.0.0.1:8080") + (__ENV.LOAD_PATH || "/v1/chat/completions");
const body = JSON.stringify({
  model: __ENV.LOAD_MODEL || "gpt-4o",
  messages: [{ role: "user", content: "load stream" }],
  stream: true,
});
const headers = {
  "content-type": "application/json",
  authorization: `Bearer ${__ENV.LOAD_KEY || "any"}`,
};
const text = Array.from({ length: 200 }, (_, index) => index + 1).join(" ");
const nominal = 199 * 20; // milliseconds from the first word to the last, as in scenarios.yaml

const first = new Trend("stream_first_byte", true);
const late = new Trend("stream_late", true);

export const options = {
  thresholds: {
    checks: ["rate==1"],
    stream_late: ["p(99)<1000"],
  },
};

export default function () {
  const answer = http.post(url, body, { headers, timeout: "120s" });
  const whole = check(answer, {
    "status is 200": (one) => one.status === 200,
    "every word arrived": (one) => words(one.body) === text,
  });
  if (whole) {
    first.add(answer.timings.waiting);
    late.add(answer.timings.receiving - nominal);
  }
}

function words(stream) {
  let found = "";
  for (const line of (stream || "").split("\n")) {
    if (line.startsWith("data: {")) {
      for (const choice of JSON.parse(line.slice(6)).choices) {
        found += choice.delta.content || "";
      }
    }
  }
  return found;
}
