// The verdict on a session as text for people.

const MOST = 20;

/** What is wrong, a line each; the verdict and the journal are as the server sends them. */
export function describe(found, journal) {
  const lines = [...noRequests(found), ...problems(found, journal), ...notJudged(found)];
  const more = lines.length > MOST ? [`... and ${lines.length - MOST} more`] : [];
  const listed = [...lines.slice(0, MOST), ...more].map((line) => `  ${line}`);
  return [`The verdict on the session '${found.session}' is ${found.verdict}:`, ...listed].join(
    "\n",
  );
}

function noRequests(found) {
  if (!found.no_requests) return [];
  return [
    "no request came; does the client use the session's `baseUrls` or its `env`? " +
      "(`allowNoRequests: true` accepts it)",
  ];
}

function problems(found, journal) {
  const requests = new Map(journal.map((one) => [one.number, one]));
  return [
    ...found.violations.map((one) => `${one.invariant}: ${inRequest(one)}${one.message}`),
    ...found.unplayed.map((one) => `not played: turn ${one.turn + 1} of ${one.scenario}`),
    ...found.unmatched.map((number) => `no scenario answers ${request(number, requests)}`),
    ...(found.failed ?? []).map((number) => `not answered: ${request(number, requests)}`),
    ...found.invalid.map((number) => `refused: ${request(number, requests)}`),
    ...(found.unopened ?? []).map(
      (one) =>
        `request ${one.request}: nobody opened the gate '${one.gate}' within its limit, so the ` +
        `answer went on; call session.release("${one.gate}"), or give the gate a longer 'limit'`,
    ),
  ];
}

const inRequest = (violation) => (violation.exchange ? `request ${violation.exchange}: ` : "");

function request(number, requests) {
  const known = requests.get(number);
  if (!known) return `request ${number}`;
  const problems = (known.problems ?? []).join("\n").replaceAll("\n", "\n    ");
  return `request ${number}, ${known.method} ${known.path}: ${problems}`;
}

function notJudged(found) {
  const lines = [];
  if (found.not_judged.length) {
    lines.push(`too large to be kept and judged: request ${found.not_judged.join(", ")}`);
  }
  for (const gap of found.gaps ?? []) lines.push(`requests may be missing: ${gap}`);
  if (found.maybe_counted?.length) {
    const numbers = found.maybe_counted.join(", ");
    lines.push(`requests that were refused, and may have been counted: ${numbers}`);
  }
  for (const what of found.doubtful ?? []) {
    lines.push(`a request that is missing may be the cause: ${what}`);
  }
  if (found.missed_faults?.length) {
    lines.push(`requests with a fault that did not strike: ${found.missed_faults.join(", ")}`);
  }
  if (found.forgotten) lines.push(`requests that the server has forgotten: ${found.forgotten}`);
  if (found.evicted) {
    lines.push("the server dropped this session once; its earlier requests are not judged");
  }
  return lines;
}
