// The stream view: the parts of an answer on a time axis, their bytes, and the events in them.
import { button, count, h, line, long, number, plain, span } from "./dom.js";

const AT_ONCE = 400; // parts that are made before the browser draws; the others follow
const MOST_TICKS = 300;
const ENDINGS = new Map([
  ["complete", "ends properly"],
  ["closed", "breaks off: the connection is closed before its end"],
  ["reset", "breaks off: the connection is reset"],
  ["chunk", "breaks off in the middle of an HTTP chunk"],
  ["open", "is not over yet"],
]);

const ms = (microseconds) => span(microseconds / 1e6);

function piece(one) {
  if (typeof one === "string") return long(one);
  const [kind, text, note] = one;
  if (kind === "end") return h("b", { class: "end" }, text);
  if (kind === "escape") return h("b", { class: "escape", title: note }, text);
  if (kind === "cut") return h("b", { class: "cut", title: note }, text ? "✂" + text : "│");
  const fold = h("details", { class: "fold" }, h("summary", {}, note));
  fold.addEventListener("toggle", () => fold.childNodes.length === 1 && fold.append(long(text, 20000)));
  return fold;
}

function event(one) {
  const fields = Object.entries(one.fields || {});
  const head = [h("b", { class: "kind" }, line(one.kind)), " ", h("span", {}, line(one.summary || "", 400))];
  if (!fields.length) return h("div", { class: "event" }, head);
  const made = h("details", { class: "event" }, h("summary", {}, head));
  made.addEventListener("toggle", () => {
    if (made.childNodes.length > 1) return;
    made.append(h("pre", {}, JSON.stringify(one.fields, null, 1)));
  });
  return made;
}

function times(part) {
  const { at, left } = part;
  const found = [];
  if (at !== null && at !== undefined) found.push(h("span", {}, h("small", {}, "due "), ms(at)));
  if (left !== null && left !== undefined) {
    const late = at === null || at === undefined ? 0 : left - at;
    found.push(h("span", {}, h("small", {}, "left "), ms(left)));
    if (late > 5000) found.push(h("span", { class: "late" }, `${ms(late)} late`));
  }
  return found;
}

/** How many bytes of a part were sent. */
const sentOf = (part, gone) =>
  gone === null || gone === undefined ? part.size : Math.max(0, Math.min(part.size, gone - part.offset));

function partRow(part, at, { gone_after: gone, streamed }) {
  const sent = sentOf(part, gone);
  const marks = [
    part.quirk && h("span", { class: "badge k-as-plain" }, "≈ quirk ", line(part.quirk, 60)),
    sent === 0 && part.size > 0 && h("span", { class: "badge k-not-judged" }, "⇥ not sent"),
    sent > 0 && sent < part.size && h("span", { class: "badge k-data-lost" }, `⇥ ${count(sent, "byte")} of it sent`),
  ];
  return h("div", { class: sent === 0 && part.size > 0 ? "part unsent" : "part", id: `part-${at + 1}`, role: "row" },
    h("div", { class: "when", role: "rowheader" },
      h("b", {}, streamed === false ? "body" : `${part.segment ? "segment" : "frame"} ${number(at + 1)}`), times(part),
      h("small", {}, count(part.size, "byte")), marks),
    h("div", { class: "raw", role: "cell" }, (part.lines || []).map((pieces) => h("div", { class: "line" }, pieces.map(piece)))),
    h("div", { class: "events", role: "cell" }, (part.events || []).map(event)));
}

/** A mark between two parts: where a fault struck, or the client went away. */
function marks(stream) {
  const found = [];
  const known = (value) => value !== null && value !== undefined;
  if (stream.fault && known(stream.struck_after)) {
    found.push([stream.struck_after, "k-data-lost", `⚡ the fault ${plain(stream.fault)} struck after ${count(stream.struck_after, "byte")}`]);
  }
  if (known(stream.gone_after)) {
    found.push([stream.gone_after, "k-data-lost", `⇥ the answer was broken off after ${count(stream.gone_after, "byte")}: the client went away, or the server stopped`]);
  }
  return found.map(([at, kind, text]) => ({ at, node: h("div", { class: `mark ${kind}` }, text) }));
}

function mostOf(parts, name) {
  let most = 0;
  for (const part of parts) if (part[name] > most) most = part[name];
  return most;
}

/** The parts as dots on a line; many parts as bars, one for those of the same short time. */
function rail(parts, name, total, reveal) {
  const many = parts.length > MOST_TICKS;
  const groups = new Map();
  parts.forEach((part, at) => {
    const value = name === "order" ? at : part[name];
    if (value === null || value === undefined) return;
    const place = many ? Math.floor((MOST_TICKS * value) / total) : at;
    const group = groups.get(place) || { first: at, value, count: 0 };
    group.count += 1;
    groups.set(place, group);
  });
  const most = Math.max(...[...groups.values()].map((one) => one.count));
  return h("div", { class: `rail ${name}` }, [...groups.values()].map((group) => {
    const press = (event) => {
      event.preventDefault();
      reveal(group.first);
    };
    const title = `${count(group.count, "frame")} from number ${group.first + 1} on${name === "order" ? "" : `, at ${ms(group.value)}`}`;
    const made = h("a", { class: many ? "bar" : "tick", href: "#", tabindex: "-1", title, click: press });
    made.style.left = `${((100 * group.value) / total).toFixed(2)}%`;
    if (many) made.style.height = `${Math.round(4 + (16 * group.count) / most)}px`;
    return made;
  }));
}

function axis(stream, reveal) {
  const { parts } = stream;
  if (parts.length < 2) return null;
  const last = Math.max(mostOf(parts, "at"), mostOf(parts, "left"));
  const timed = last > 0;
  const rails = timed
    ? ["at", "left"].filter((name) => parts.some((part) => part[name] !== null && part[name] !== undefined))
    : ["order"];
  const words = { at: "due", left: "left", order: "in this order" };
  return h("div", { class: "axes", "aria-hidden": "true" },
    rails.map((name) => h("div", { class: "axis" }, h("span", { class: "axis-name" }, words[name]),
      rail(parts, name, timed ? last : parts.length - 1, reveal))),
    h("div", { class: "ends" }, h("span", {}, timed ? "0 ms" : "first"), h("span", {}, timed ? ms(last) : "last")));
}

function summary(stream) {
  const parts = stream.parts.length + (stream.unshown || 0);
  const last = Math.max(mostOf(stream.parts, "at"), mostOf(stream.parts, "left"));
  const source = stream.source === "made again"
    ? "Made again from the scenario: these bytes are what the scenario plays." : "As it was sent.";
  const left = stream.gone_after !== null && stream.gone_after !== undefined;
  const wording = left ? `was broken off after ${count(stream.gone_after, "byte")}` : ENDINGS.get(stream.ending);
  return [
    h("p", { class: "sent" },
      count(stream.size, "byte"),
      stream.streamed === false ? ", not streamed" : ` in ${count(parts, stream.parts.some((one) => one.segment) ? "segment" : "frame")}`,
      last > 0 ? `, within ${ms(last)}` : parts > 1 ? ", all at once" : "", ". The answer ",
      wording || line(stream.ending || ""), ". ", source, " ",
      stream.fault ? h("span", { class: "badge k-data-lost" }, "⚡ fault ", line(stream.fault, 80)) : null),
    stream.note ? h("p", { class: "box" }, stream.note) : null,
  ];
}

const fact = (name, value) => value === null || value === undefined || value === "" ? []
  : [h("dt", {}, name), h("dd", {}, value instanceof Node ? value : long(typeof value === "string" ? value : JSON.stringify(value)))];

/** What the events add up to. */
export function sumView(sum) {
  if (!sum) return null;
  const usage = sum.usage && Object.entries(sum.usage).filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
  return h("section", { class: "sum", "aria-label": "What the answer adds up to" },
    h("h3", {}, "What it adds up to"),
    h("dl", { class: "facts" },
      fact("reasoning", sum.reasoning), fact("text", sum.text),
      (sum.calls || []).map((one) => fact("call", callText(one))),
      fact("finish", sum.finish), fact("usage", usage)),
    (sum.problems || []).length
      ? h("div", { class: "box warn" }, h("b", {}, "! Could not be decoded"), h("ul", {}, sum.problems.map((one) => h("li", {}, one))))
      : null);
}

/** A tool call as one reads it: name(arguments), and its id. */
export function callText(one) {
  const made = document.createDocumentFragment();
  made.append(h("code", {}, h("b", {}, line(one.name || "(no name)")), "(", one.arguments || "", ")"));
  if (one.id) made.append(" ", h("small", {}, "id ", line(one.id)));
  return made;
}

const head = (stream) => h("details", { class: "head", open: stream.status !== 200 },
  h("summary", {}, `Status ${stream.status}`, stream.reason ? [" ", line(stream.reason)] : "",
    ` and ${count((stream.headers || []).length, "header")}`),
  headerTable(stream.headers || [], "Headers of the answer"));

export const headerTable = (entries, caption) => h("table", { class: "headers" },
  h("caption", { class: "hidden" }, caption),
  h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "name"), h("th", { scope: "col" }, "value"))),
  h("tbody", {}, entries.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, line(name)), h("td", {},
    value === "***" ? [h("code", {}, "***"), h("small", {}, " masked: the server does not keep it")] : long(String(value)))))));

const KEY = () => h("p", { class: "key" },
  h("b", { class: "end" }, "CR LF"), " a line ends with carriage return and line feed · ",
  h("b", { class: "cut" }, "│"), " a write begins in the middle of a line · ",
  h("b", { class: "escape" }, "\\x00"), " what cannot be shown");

/** The view of a STREAM. With `play`, its parts appear when they are due; the returned node stops
    that when it leaves the page. */
export function streamView(stream, { play = false } = {}) {
  const list = h("div", { class: "parts", role: "table", "aria-label": "Parts of the answer: time, bytes, events" });
  let made = 0;
  const waiting = marks(stream);
  const make = (end) => {
    const rows = document.createDocumentFragment();
    for (; made < Math.min(end, stream.parts.length); made += 1) {
      const part = stream.parts[made];
      while (waiting.length && waiting[0].at <= part.offset) rows.append(waiting.shift().node);
      rows.append(partRow(part, made, stream));
    }
    if (made >= stream.parts.length) {
      rows.append(...waiting.splice(0).map((one) => one.node));
      if (stream.unshown) rows.append(h("p", { class: "note" }, `${count(stream.unshown, "more part")} not shown.`));
      if (!stream.parts.length) rows.append(h("p", { class: "note" }, "No bytes: the answer has no body."));
    }
    list.append(rows);
  };
  const reveal = (at) => {
    make(at + 1);
    const row = list.querySelector(`#part-${at + 1}`);
    row.scrollIntoView({ block: "center" });
    row.classList.add("found");
    setTimeout(() => row.classList.remove("found"), 2000);
  };
  const view = h("div", { class: "stream" }, summary(stream), head(stream), axis(stream, reveal), list, KEY());
  const sum = sumView(stream.sum);
  if (play) playParts(stream, list, make, () => sum && list.after(sum));
  else {
    make(AT_ONCE);
    const rest = () => {
      if (made >= stream.parts.length || !view.isConnected) return;
      make(made + AT_ONCE);
      requestAnimationFrame(rest);
    };
    requestAnimationFrame(rest);
    if (sum) list.before(sum);
  }
  return view;
}

/** Shows parts when they are due, from now on. */
function playParts(stream, list, make, over) {
  const began = performance.now();
  let shown = 0;
  const state = h("p", { class: "playing", role: "status" }, "▶ playing");
  const all = button("Show all", () => { shown = Infinity; });
  list.before(state, all);
  const step = () => {
    if (shown && !list.isConnected) return;
    const now = (performance.now() - began) * 1000;
    let due = shown;
    while (due < stream.parts.length && (stream.parts[due].at || 0) <= now) due += 1;
    if (due > shown || shown === 0) make(due);
    shown = due;
    if (due < stream.parts.length) {
      requestAnimationFrame(step);
      return;
    }
    state.replaceChildren("■ played");
    all.remove();
    make(stream.parts.length);
    over();
  };
  requestAnimationFrame(step);
}
