// One request: its conversation, stream, body, headers, and why nothing or something else matched.
import { address, changed, go, read } from "./address.js";
import { clock, copyable, count, fill, get, h, line, long, number, span } from "./dom.js";
import { diff } from "./diff.js";
import { jsonView } from "./json.js";
import { listen, store } from "./live.js";
import { marksOf, outcome, turnText } from "./requests.js";
import { callText, headerTable, streamView } from "./stream.js";

const TABS = [["conversation", "Conversation"], ["stream", "Stream"], ["why", "Why"], ["body", "Body"], ["headers", "Headers"], ["socket", "Connection"]];
const OF_MODELS = ["conversation", "why"];

export class Request {
  constructor(place) {
    this.place = place;
    this.key = null;
    listen((what) => {
      if (what === "requests" && this.key && read().view === "request") this.changed();
    });
  }

  /** Shows the request and the view that the address names. */
  async show() {
    const { steps, query } = read();
    const key = `${steps[0]} ${steps[1]}`;
    if (key !== this.key) {
      this.key = key;
      this.data = null;
      fill(this.place, h("p", { class: "note loading" }, "Loading …"));
      await this.load(steps);
    } else if (this.data) this.showView(query);
  }

  async load(steps) {
    const key = this.key;
    if (this.loading) this.loading.abort();
    this.loading = new AbortController();
    try {
      const data = await get(`request/${encodeURIComponent(steps[0])}/${encodeURIComponent(steps[1] || "")}`, this.loading.signal);
      if (key !== this.key) return;
      this.data = data;
      this.row = data.row;
      this.view = null;
      this.build();
    } catch (error) {
      if (error.name === "AbortError" || key !== this.key) return;
      fill(this.place, this.closing(), h("h2", {}, "Request ", line(steps[0]), ` #${steps[1]}`), h("p", { class: "box warn" }, "! ", error.message));
    }
  }

  /** Loads again when the row of this request has changed: its answer is over. */
  changed() {
    const known = store.byKey.get(this.key);
    if (!known || !this.data || known.row === this.seen) return;
    this.seen = known.row;
    const old = this.row;
    if (known.row.open === old.open && known.row.at === old.at && known.row.bytes_sent === old.bytes_sent) return;
    this.load(read().steps);
  }

  closing() {
    return h("p", { class: "closing" },
      h("a", { href: address("requests", [], changed(read().query, { view: "" })), class: "close" }, "✕ Close"),
      h("a", { href: this.neighbour(1), class: "step" }, "↑ newer"), h("a", { href: this.neighbour(-1), class: "step" }, "↓ older"));
  }

  /** The address of the request that arrived next or before in the same session. */
  neighbour(step) {
    const { steps, query } = read();
    return address("request", [steps[0], Math.max(1, Number(steps[1]) + step)], query);
  }

  build() {
    const { row, entry, calls, findings, findings_why: why } = this.data;
    const found = this.data.explanation;
    this.tabs = h("nav", { class: "tabs", "aria-label": "Parts of the request" }, this.shownTabs().map(([name, label]) => h("a", { "data-view": name },
      label, name === "why" && ((found && row.outcome !== "played") || this.data.recorded) ? h("span", { class: "badge k-wrong-call" }, "!", h("span", { class: "hidden" }, " explained")) : null)));
    this.panel = h("div", { id: "panel" });
    const explained = found && flat(found.message || "");
    const problems = ((entry && entry.problems) || []).filter((one) => flat(one) !== explained);
    const facts = [line(`${row.method || ""} ${row.path || ""}`), row.model ? ["model ", line(row.model, 80)] : null, turnText(row) ? this.scenarioLink(row) : null,
      `${row.status || "no status"}`, row.open ? "still open" : span(row.duration), count(row.bytes_sent || 0, "byte"), ...marksOf(row).map(([mark, text]) => [mark, " ", line(text, 120)])];
    fill(this.place, this.closing(),
      h("h2", { id: "request-title", tabindex: "-1" }, outcome(row), " ", line(row.session, 60), ` #${row.number} `, h("small", {}, clock(row.at), " · ", line(row.api || "no API"))),
      h("p", { class: "about" }, facts.filter(Boolean).flatMap((one, at) => at ? [" · ", one] : [one])),
      problems.length ? h("ul", { class: "problems box warn" }, problems.map((one) => h("li", { class: "message-text" }, long(one, 1000)))) : null,
      (findings || []).length ? h("div", { class: "box warn", id: "findings" }, h("b", {}, `! ${count(findings.length, "finding")} of verify`),
        h("ul", {}, findings.map((one) => h("li", {}, h("code", {}, one.rule), ": ", one.message)))) : null,
      why ? h("p", { class: "note" }, why) : null,
      calls.length ? h("ul", { class: "box", id: "calls" }, calls.map((one) => callWay(one, row))) : null,
      this.tabs, this.panel);
    this.showView(read().query);
  }

  scenarioLink(row) {
    const to = row.mcp ? address("scenario", [row.mcp.scenario]) : address("scenario", [row.scenario], { api: row.api, turn: row.turn });
    return h("a", { href: to }, line(turnText(row), 120));
  }

  /** The views that there are: only a request on a WebSocket has a connection to show, and none for an MCP server a conversation. */
  shownTabs() {
    const { socket, row } = this.data;
    return TABS.filter(([name]) => name === "socket" ? socket : !row.mcp || !OF_MODELS.includes(name));
  }

  defaultView() {
    return this.row.mcp ? "body" : this.data.explanation && this.row.outcome !== "played" ? "why" : "conversation";
  }

  showView(query) {
    const names = this.shownTabs().map(([name]) => name);
    const view = names.includes(query.get("view")) ? query.get("view") : this.defaultView();
    if (view === this.view) return;
    this.view = view;
    for (const tab of this.tabs.children) {
      if (tab.dataset.view === view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
      tab.setAttribute("href", address("request", read().steps, changed(query, { view: tab.dataset.view })));
    }
    fill(this.panel, VIEWS[view](this.data));
  }

  /** Shows the view of this number, from 0. */
  choose(at) {
    const tab = this.data && this.shownTabs()[at];
    if (tab) go(address("request", read().steps, changed(read().query, { view: tab[0] })));
  }

  close() {
    this.key = null;
    this.data = null;
    if (this.loading) this.loading.abort();
    fill(this.place);
  }
}

const flat = (text) => text.replace(/\s+/g, " ").trim();

/** A call of the model: the request that was answered with it, the operation of the MCP server, the request with the result. */
function callWay({ exchange, id, tool, operations, result }, row) {
  const to = (number, ...text) => number === row.number ? h("b", {}, text)
    : h("a", { href: address("request", [row.session, number], changed(read().query, { view: "" })) }, text);
  return h("li", {}, to(exchange, "tool ", line(tool, 120)), h("small", {}, " id ", line(id, 60)),
    operations.map((one) => [" → ", to(one.number, `operation ${one.number} (${span(one.duration)})`)]),
    result === null ? " → no result yet" : [" → ", to(result, `result in request ${result}`)]);
}

// The conversation

const PARTS = new Map([["reasoning", "reasoning"], ["call", "calls"], ["result", "result"], ["media", "media"], ["other", "other"]]);

function part(one) {
  const text = one.text || "";
  const unshown = (one.size || 0) - Math.max(text.length, (one.arguments || "").length);
  const cut = unshown > 0 ? h("p", { class: "note" }, `${number(unshown)} more characters: see the body`) : null;
  if (one.kind === "text") return h("div", { class: "say" }, long(text), cut);
  const label = h("span", { class: "kind" }, PARTS.get(one.kind) || line(one.kind));
  if (one.kind === "call") return h("div", { class: "part-call" }, label, " ", callText(one), cut);
  return h("div", { class: `part-${PARTS.has(one.kind) ? one.kind : "other"}` }, label, " ",
    one.name ? h("code", {}, line(one.name)) : null, one.id ? h("small", {}, " id ", line(one.id)) : null,
    one.is_error ? h("span", { class: "badge k-loud-failure" }, "! error") : null, h("div", { class: "say" }, long(text)), cut);
}

const message = (role, parts, kind = "") => h("li", { class: `message ${kind}` }, h("h3", {}, line(role)), h("div", {}, parts));

function conversationView(data) {
  const { conversation: found, answer } = data;
  if (!found && !(answer && answer.sum)) {
    return h("p", { class: "note" }, "This request cannot be read as a conversation. ", data.answer_why || "", " See the body.");
  }
  const { messages = [], tools = [] } = found || {};
  return [
    h("ol", { class: "conversation" }, messages.map((one) => message(one.role, one.parts.map(part), one.role === "user" ? "user" : "")),
      h("li", { class: "message answer" }, h("h3", {}, "answer"), h("div", {},
        answer && answer.sum ? answerParts(answer.sum) : h("p", { class: "note" }, data.answer_why || "No answer.")))),
    tools.length ? h("details", { class: "box" }, h("summary", {}, count(tools.length, "tool")), h("dl", { class: "facts" },
      tools.map((one) => [h("dt", {}, h("code", {}, line(one.name))), h("dd", {}, one.description || h("span", { class: "note" }, "no description"))]))) : null,
  ];
}

function answerParts(sum) {
  const usage = Object.entries(sum.usage || {}).filter(([, value]) => typeof value === "number").map(([name, value]) => `${name} ${value}`);
  const parts = [
    sum.reasoning ? part({ kind: "reasoning", text: sum.reasoning }) : null,
    sum.text ? part({ kind: "text", text: sum.text }) : null,
    (sum.calls || []).map((one) => part({ kind: "call", ...one })),
    h("p", { class: "note" }, "finish ", sum.finish ? line(sum.finish) : "not given", usage.length ? " · " : "", line(usage.join(", "))),
    (sum.problems || []).length ? h("p", { class: "box warn" }, "! ", line(sum.problems.join("; "), 1000)) : null,
  ];
  return parts;
}

// Why

const KINDS = new Map([["unmatched", "No scenario matches this request"], ["refused", "The turn refused this request"],
  ["unknown route", "No API and no scenario has this route"], ["invalid", "The API does not accept this request"]]);

function condition(one) {
  const [expected, actual] = one.met ? [one.expected, one.actual].map((text) => long(text || "", 300)) : diff(one.expected || "", one.actual || "");
  return h("tr", { class: one.met ? "met" : "unmet" },
    h("td", { class: "state" }, h("span", { class: `badge k-${one.met ? "right" : "wrong-call"}` }, one.met ? "✓ met" : "✖ not met")),
    h("th", { scope: "row" }, h("code", {}, line(one.path))),
    h("td", { class: "value", "data-label": "expected" }, expected),
    h("td", { class: "value", "data-label": "actual" }, actual, one.note ? h("div", { class: "note" }, one.note) : null));
}

function nearest(one, at) {
  const met = one.conditions.filter((found) => found.met).length;
  const where = one.file ? `${one.file}${one.line ? `:${one.line}` : ""}` : "";
  return h("details", { class: "nearest", open: at < 1 },
    h("summary", {}, h("b", {}, line(one.scenario, 120)), one.turn === null || one.turn === undefined ? "" : ` turn ${one.turn + 1}`,
      h("small", {}, ` ${met} of ${count(one.conditions.length, "condition")} met`, where ? " · " : "", line(where))),
    h("p", {}, h("a", { href: address("scenario", [one.scenario], { turn: one.turn }) }, "Open the scenario")),
    one.conditions.length ? h("table", { class: "conditions" }, h("caption", { class: "hidden" }, "Conditions of ", line(one.scenario, 120)),
      h("thead", {}, h("tr", {}, ["", "condition", "expected", "actual"].map((text) => h("th", { scope: "col" }, text || h("span", { class: "hidden" }, "state"))))),
      h("tbody", {}, one.conditions.map(condition))) : h("p", { class: "note" }, "It has no conditions."));
}

function otherRequest(found) {
  if (!found) return null;
  const { changes, lines, why } = found;
  return [h("h3", {}, "Another request than was recorded"), h("ul", { id: "changes" }, changes.map((one) => h("li", { class: "message-text" }, long(one, 1000)))),
    lines.length ? h("table", { class: "beside" }, h("caption", { class: "hidden" }, "Both requests, line by line"),
      h("thead", {}, h("tr", {}, ["recorded", "sent"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, lines.map(lineBeside))) : h("p", { class: "note" }, why)];
}

function lineBeside(one) {
  if (typeof one === "number") return h("tr", { class: "note" }, h("td", { colspan: 2 }, `… ${count(one, "equal line")}`));
  const [left, right] = typeof one === "string" ? [one, one] : diff(one[0] || "", one[1] || "", [["del", "only recorded: "], ["ins", "only sent: "]]);
  return h("tr", { class: typeof one === "string" ? "" : "other" }, h("td", {}, left), h("td", {}, right));
}

const answered = (row) => ["The scenario ", h("a", { href: address("scenario", [row.scenario], { api: row.api, turn: row.turn }) }, line(turnText(row), 120)), " answered this request."];

const recordedAnswer = ({ row, recorded }) => [
  row.recorded ? h("p", {}, "Recording of the turn: ", row.recorded === "exact" ? "played as it was recorded" : line(row.recorded), ".") : null, otherRequest(recorded)];

/** The conditions of the scenario that answered, and the scenarios that came near it. */
function playedView(data, [own, ...others]) {
  const holds = (one) => one.conditions.every((found) => found.met);
  const [much, priority] = own.rank;
  const lost = (one) => !holds(one) ? "" : one.rank[0] < much ? `It holds, too, with fewer conditions: ${one.rank[0]}, and not ${much}.`
    : one.rank[0] === much && one.rank[1] < priority ? "It holds, too, and its priority is lower." : "It holds, too; the history of the request, or the order of the scenarios, decided.";
  return [h("p", {}, answered(data.row)),
    holds(own) ? null : h("p", { class: "box warn" }, "! Not all of its conditions hold now: its file was read again, or the session decided."),
    nearest(own, 0), recordedAnswer(data),
    others.length ? [h("h3", {}, "Scenarios that came near"), others.map((one) => [nearest(one, 1), lost(one) ? h("p", { class: "note" }, lost(one)) : null])] : null];
}

function whyView(data) {
  const found = data.explanation;
  const { row } = data;
  if (!found) {
    return [h("p", {}, row.scenario ? answered(row) : "There is nothing to explain: no scenario was needed, or it is not known any more."), recordedAnswer(data)];
  }
  if (found.kind === "played") return playedView(data, found.nearest);
  const nearestOnes = found.nearest || [];
  return [
    h("h3", {}, KINDS.get(found.kind) || line(found.kind)),
    nearestOnes.length ? null : h("p", { class: "box warn message-text" }, found.message),
    nearestOnes.length ? [h("h3", {}, found.kind === "refused" ? "Conditions" : "Nearest scenarios"), h("p", { class: "key" }, h("ins", {}, "expected only"), " · ", h("del", {}, "there instead")), nearestOnes.map(nearest)] : null,
    found.skeleton ? [h("h3", {}, "A scenario for this request"), h("p", {}, "Write it into ", h("code", {}, line(found.file || "a file")), " in a folder that is served, and change the answer. With ", h("code", {}, "--reload"), " it is played at once."),
      copyable(found.skeleton, "the scenario", found.file || "scenario.yaml", { id: "skeleton" })] : found.skeleton_why ? h("p", { class: "note" }, line(found.skeleton_why, 300)) : null,
    nearestOnes.length ? h("details", { class: "box" }, h("summary", {}, "The message that the client got"), h("p", { class: "message-text" }, found.message)) : null,
  ];
}

// Stream, body, headers

const streamTab = ({ answer, answer_why: why }) => answer ? streamView(answer) : h("p", { class: "box" }, why || "The answer is not known.");

const headersTab = ({ entry, answer }) => {
  const all = Object.entries((entry && entry.headers) || {});
  return [h("h3", {}, "Request"), h("p", { class: "note" }, "Credentials are masked in the journal: the server does not keep them."),
    headerTable(all, "Headers of the request"),
    answer ? [h("h3", {}, "Answer"), headerTable(answer.headers || [], "Headers of the answer")] : null];
};

function bodyTab({ entry }) {
  const body = entry ? entry.body : null;
  const text = typeof body === "string" ? body : body === null || body === undefined ? "" : JSON.stringify(body);
  return jsonView(text, "Body of the request");
}

// The connection: the client on the left, the service on the right, time downwards

const MOST_GAP = 64; // pixels

function socketItem(one, before, row) {
  const gap = Math.min(MOST_GAP, Math.round(4 * Math.log2(1 + 1000 * (one.at - before))));
  const own = one.number === row.number;
  const label = [h("b", { class: "kind" }, line(one.kind, 80)), one.count > 1 ? ` × ${number(one.count)}` : null];
  const card = h("div", { class: `${one.kind === "fault" ? "card broken" : "card"}${own ? " own" : ""}` },
    own ? label : h("a", { href: address("request", [row.session, one.number], changed(read().query, { view: "socket" })) }, label),
    one.text ? h("div", { class: "say" }, line(one.text, 160)) : null);
  const made = h("li", { class: `item ${one.side}` }, h("span", { class: "when" }, span(one.at)),
    h("span", { class: "hidden" }, one.side === "client" ? "the client: " : "the service: "), card);
  made.style.marginTop = `${gap}px`;
  return made;
}

function socketView({ socket, row }) {
  const { items, left_out: left } = socket;
  return [h("p", { class: "note" }, "All messages of this WebSocket, at the times at which they came or were sent. Messages of one kind that follow one another are counted."),
    h("div", { class: "socket-heads", "aria-hidden": "true" }, h("span", {}, "time"), h("span", {}, "client"), h("span", {}, "service")),
    h("ol", { class: "socket", id: "socket" }, items.map((one, at) => socketItem(one, at ? items[at - 1].at : one.at, row))),
    left ? h("p", { class: "note" }, `${count(left, "message")} more are not shown.`) : null];
}

const VIEWS = { socket: socketView, conversation: conversationView, stream: streamTab, why: whyView, body: bodyTab, headers: headersTab };
