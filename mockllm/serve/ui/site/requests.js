// The list of requests: filters, sessions, a window of rows.
import { address, changed, go, read, replace } from "./address.js";
import { button, clock, copy, count, fill, h, line, number, plain, say, span } from "./dom.js";
import { keyOf, store } from "./live.js";

const OUTCOMES = new Map([
  ["played", ["✓", "right"]],
  ["unmatched", ["✖", "wrong-call"]],
  ["invalid", ["≠", "data-lost"]],
  ["error", ["!", "loud-failure"]],
  ["forwarded", ["→", "as-plain"]],
  ["auxiliary", ["·", "as-plain"]],
  ["unknown route", ["?", "wrong-metadata"]],
  ["failed", ["✖", "wrong-call"]],
]);
const WORDS = new Map([["invalid", "refused"], ["error", "HTTP error"], ["unknown route", "no route"], ["cut", "cut off"], ["auxiliary", "beside"]]);
const UNANSWERED = ["unmatched", "invalid", "failed", "unknown route"];
const GROUPS = ["unanswered", "cut"]; // of outcomes: filters, and no outcome of a request
const BEYOND = 8; // rows that are made above and below what is visible

export function outcome(row) {
  const [mark, kind] = OUTCOMES.get(row.outcome) || ["·", "not-judged"];
  if (row.open) return h("span", { class: "badge k-not-judged" }, "… open");
  if (row.cut && ["played", "forwarded"].includes(row.outcome)) {
    return h("span", { class: "badge k-data-lost", title: `${row.outcome}, cut off: ${row.cut}` }, "✂ ", line(row.cut, 30));
  }
  const words = row.outcome === "error" && row.cause ? `error: ${row.cause}` : WORDS.get(row.outcome) || row.outcome;
  return h("span", { class: `badge k-${kind}`, title: row.outcome }, mark, " ", line(words, 30));
}

export function marksOf(row) {
  const found = [];
  if (row.client_gone) found.push(["⇥", "the client went away", "client left"]);
  if (row.interrupted) found.push(["⏹", "a message of the client ended it", "interrupted"]);
  if (row.stopped) found.push(["■", "the server stopped", "stopped"]);
  if (row.fault) found.push(["⚡", `fault ${row.fault}${row.struck === null ? ", did not strike" : ""}`, "fault"]);
  for (const one of row.quirks || []) found.push(["≈", `quirk ${one}`, "quirk"]);
  if (row.recorded === "exact") found.push(["●", "a recording was played", "recording"]);
  if (row.changes) found.push(["Δ", "another request than was recorded", "other request"]);
  return found;
}

export const turnText = (row) => row.mcp ? (row.mcp.scenario ? `${row.mcp.scenario} · entry ${row.mcp.entry + 1}` : "")
  : row.scenario === null || row.scenario === undefined ? ""
  : `${row.scenario} · turn ${row.turn === null ? "?" : row.turn + 1}${row.attempt > 1 ? ` · attempt ${row.attempt}` : ""}`;

export class Requests {
  constructor(list, sessions) {
    this.list = list;
    this.sessions = sessions;
    this.rows = [];
    this.made = new Map(); // by key: {row, node}
    this.selected = null;
    this.waiting = 0;
    this.build();
  }

  build() {
    const choice = (name, label) => {
      const made = h("select", { name, "aria-label": label, change: (event) => replace({ [name]: event.target.value }) });
      made.label = label;
      return made;
    };
    this.choices = { session: choice("session", "all sessions"), api: choice("api", "all APIs"),
      outcome: choice("outcome", "all outcomes"), scenario: choice("scenario", "all scenarios") };
    this.text = h("input", { type: "search", name: "text", placeholder: "text, model, path  ( / )", "aria-label": "Search",
      input: () => replace({ text: this.text.value }) });
    this.pause = button("", () => this.togglePause(), { class: "pause" });
    this.clear = button("Clear", () => this.clearAll(), { class: "clear" });
    this.count = h("output", { "aria-live": "polite" });
    this.spacer = h("ol", { class: "rows", role: "list" });
    this.window = h("div", { class: "window", tabindex: "0", role: "region", "aria-label": "Requests, newest first" }, this.spacer);
    this.empty = h("div", { class: "empty" });
    this.heads = h("div", { class: "heads", "aria-hidden": "true" },
      ["time", "outcome", "API", "scenario and turn", "request", "status", "took", ""].map((one) => h("span", {}, one)));
    fill(this.list, h("form", { class: "filters", submit: (event) => event.preventDefault() },
      Object.values(this.choices), this.text, this.pause, this.clear, h("div", { class: "counts" }, this.count)),
    this.heads, this.empty, this.window);
    this.window.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.window);
  }

  togglePause() {
    const { query } = read();
    replace({ paused: query.get("paused") ? "" : this.newest() });
  }

  clearAll() {
    const { query } = read();
    replace({ since: query.get("since") ? "" : this.newest(), paused: "" });
  }

  /** When the newest request arrived, for addresses. */
  newest() {
    const last = store.rows.at(-1);
    return String(last ? last.row.at : Date.now() / 1000);
  }

  update() {
    const { query } = read();
    const wanted = Object.keys(this.choices).map((name) => [name, query.get(name) || ""]).filter(([, value]) => value);
    const words = (query.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const since = Number(query.get("since")) || -Infinity;
    const paused = Number(query.get("paused")) || Infinity;
    const several = store.sessions.length > 1 && !query.get("session");
    const anchor = this.anchor();
    const every = store.before.length ? [...store.before, ...store.rows] : store.rows;
    this.total = every.length;
    this.rows = [];
    let held = 0;
    let cleared = 0;
    let until;
    let longest = 0;
    for (let at = every.length - 1; at >= 0; at -= 1) {
      const { row } = every[at];
      if (row.at <= since) {
        cleared = at + 1;
        break;
      }
      if (row.at > paused) held += 1;
      else if (wanted.every(([name, value]) => fits(row, name, value)) && contains(row, words)) {
        if (row.until !== until) this.rows.push({ session: "", number: 0, until: row.until, began: true });
        until = row.until;
        this.rows.push(row);
        longest = Math.max(longest, turnText(row).length + (several ? row.session.length + 6 : 0));
      }
    }
    this.list.style.setProperty("--turn", `${longest * 0.47}rem`);
    this.fillChoices(query);
    if (document.activeElement !== this.text) this.text.value = query.get("text") || "";
    this.pause.replaceChildren(query.get("paused") ? `Go on${held ? ` (${number(held)} new)` : ""}` : "Pause");
    this.pause.setAttribute("aria-pressed", String(Boolean(query.get("paused"))));
    this.clear.replaceChildren(query.get("since") ? `Show ${number(cleared)} cleared` : "Clear");
    this.list.classList.toggle("several", several);
    this.showCount();
    this.showEmpty(query, cleared);
    this.showSessions(query);
    this.keep(anchor);
    this.draw();
  }

  /** The row at the top of the window, which stays there when others arrive above it. */
  anchor() {
    const height = this.height();
    const at = Math.floor(this.window.scrollTop / height);
    return this.window.scrollTop < height ? null : { row: this.rows[at], rest: this.window.scrollTop - at * height };
  }

  keep(anchor) {
    this.spacer.style.height = `${this.rows.length * this.height()}px`;
    if (!anchor || !anchor.row) return;
    const at = this.rows.findIndex((row) => keyOf(row) === keyOf(anchor.row));
    if (at >= 0) this.window.scrollTop = at * this.height() + anchor.rest;
  }

  height() {
    return parseFloat(getComputedStyle(this.window).getPropertyValue("--row")) || 32;
  }

  fillChoices(query) {
    const values = { session: new Set(store.sessions.map((one) => one.session)), api: new Set((store.hello || {}).apis || []),
      outcome: new Set([...GROUPS, ...OUTCOMES.keys()]), scenario: new Set() };
    for (const { row } of [...store.before, ...store.rows]) {
      for (const name of ["session", "api", "scenario"]) if (row[name]) values[name].add(row[name]);
    }
    for (const [name, select] of Object.entries(this.choices)) {
      const chosen = query.get(name) || "";
      if (chosen) values[name].add(chosen);
      const all = [...values[name]].slice(0, 2000);
      const mark = JSON.stringify(all);
      if (select.mark !== mark) {
        select.mark = mark;
        fill(select, h("option", { value: "" }, select.label), all.map((value) => {
          const made = h("option", {}, plain(name === "outcome" ? WORDS.get(value) || value : value, 60));
          made.value = value;
          return made;
        }));
      }
      select.value = chosen;
      select.classList.toggle("active", Boolean(chosen));
    }
  }

  /** The counts, at most once a second: screen readers read each change. */
  showCount() {
    if (this.counting) return;
    this.counting = setTimeout(() => {
      this.counting = null;
      const skipped = store.skipped ? `, ${number(store.skipped)} came too fast to be listed` : "";
      const dropped = store.sessions.reduce((sum, one) => sum + (one.dropped || 0), 0);
      const gone = dropped ? `, ${number(dropped)} no longer in the journal` : "";
      const text = `${number(this.rows.filter((row) => !row.began).length)} of ${count(this.total, "request")}${skipped}${gone}`;
      if (this.count.textContent !== text) this.count.replaceChildren(text);
    }, this.count.textContent ? 1000 : 100);
  }

  showEmpty(query, cleared) {
    this.empty.hidden = this.rows.length > 0;
    const kind = this.rows.length ? "" : cleared === this.total && cleared ? "cleared"
      : this.total ? "filtered" : JSON.stringify(store.hello && store.hello.urls);
    if (this.empty.kind === kind) return;
    this.empty.kind = kind;
    if (kind === "filtered") fill(this.empty, h("p", {}, "No request fits these filters."), button("Show all requests", () => go("#/requests")));
    else if (kind === "cleared") fill(this.empty, h("p", {}, "Cleared. New requests appear here."));
    else if (kind) {
      fill(this.empty, h("p", {}, store.connected ? "No request yet. Point a client to one of these; any API key will do:" : "Not connected to the server."),
        h("dl", { class: "facts" }, Object.entries((store.hello || {}).urls || {}).map(([api, url]) =>
          [h("dt", {}, line(api)), h("dd", {}, h("code", {}, line(url)), " ",
            button("Copy", () => copy(url), { "aria-label": `Copy the URL for ${plain(api, 40)}`, class: "copy" }))])));
    }
  }

  showSessions(query) {
    const chosen = query.get("session") || "";
    const mark = JSON.stringify([store.sessions, query.toString()]);
    if (this.sessions.mark === mark) return;
    this.sessions.mark = mark;
    const to = (values) => address("requests", [], changed(read().query, values));
    const entry = (name, label, total, bad) => h("li", {}, h("a", { href: to({ session: name }), "aria-current": name === chosen ? "true" : null },
      h("span", { class: "name" }, label), h("span", { class: "num" }, number(total))),
    bad ? h("a", { class: "bad", href: to({ session: name, outcome: "unanswered" }) }, `✖ ${number(bad)} unanswered`) : null);
    const badOf = (one) => UNANSWERED.reduce((sum, name) =>
      sum + (Object.hasOwn(one.outcomes || {}, name) ? one.outcomes[name] : 0), 0);
    const total = store.sessions.reduce((sum, one) => sum + one.requests, 0);
    fill(this.sessions, h("h2", {}, "Sessions"), h("ul", {}, entry("", "all sessions", total, 0),
      store.sessions.slice(0, 500).map((one) => entry(one.session, line(one.session, 60), one.requests, badOf(one)))),
    store.sessions.length > 500 ? h("p", { class: "note" }, `${number(store.sessions.length - 500)} more: choose one above the list`) : null);
  }

  /** Makes the rows of the window, and removes the others. */
  draw() {
    const height = this.height();
    const first = Math.max(0, Math.floor(this.window.scrollTop / height) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((this.window.scrollTop + this.window.clientHeight) / height) + BEYOND);
    const { view, steps, query } = read();
    const open = view === "request" ? `${steps[0]} ${steps[1]}` : null;
    if (open && open !== this.opened) this.selected = open;
    this.opened = open;
    const kept = new Set();
    const at = this.indexOfSelected();
    const wanted = [];
    for (let one = first; one < last; one += 1) wanted.push(one);
    if (at >= last) wanted.push(at);
    else if (at >= 0 && at < first) wanted.unshift(at);
    const mark = query.toString();
    let before = null; // screen readers read the nodes in the order of the document
    for (const one of wanted) {
      const row = this.rows[one];
      const key = keyOf(row);
      kept.add(key);
      let made = this.made.get(key);
      if (!made || made.row !== row || made.mark !== mark) {
        const focused = made && made.node.contains(document.activeElement);
        const node = this.rowNode(row, query);
        if (made) made.node.replaceWith(node);
        else if (before) before.after(node);
        else this.spacer.prepend(node);
        if (focused) node.firstChild.focus({ preventScroll: true });
        made = { row, node, mark };
        this.made.set(key, made);
      }
      before = made.node;
      before.style.transform = `translateY(${one * height}px)`;
      made.node.setAttribute("aria-posinset", one + 1);
      made.node.setAttribute("aria-setsize", this.rows.length);
      made.node.classList.toggle("selected", key === this.selected);
      const link = made.node.firstChild;
      if (key === open) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const [key, made] of this.made) {
      if (kept.has(key)) continue;
      made.node.remove();
      this.made.delete(key);
    }
  }

  rowNode(row, query) {
    if (row.began) {
      return h("li", { class: "began", "data-key": keyOf(row) }, h("a", { tabindex: "-1" },
        h("span", {}, `the server began again at ${clock(row.until).slice(0, 8)}: it does not have the requests below`)));
    }
    const view = query.get("view");
    const to = address("request", [row.session, row.number], changed(query, { view }));
    const said = row.text || `${row.method || ""} ${row.path || ""}`;
    const why = row.outcome === "played" ? "" : row.problem;
    return h("li", { "data-key": keyOf(row), class: row.until ? "before" : null }, h("a", { href: row.until ? null : to, click: row.until ? sayGone : null, tabindex: "-1" },
      h("span", { class: "time" }, clock(row.at).slice(0, 8), h("span", { class: "ms" }, clock(row.at).slice(8))),
      h("span", { class: "outcome" }, outcome(row)),
      h("span", { class: "api" }, line(row.api || "no API", 30)),
      h("span", { class: "turn" }, turnText(row) ? line(turnText(row), 120) : "–", h("span", { class: "in-compact" }, " · ", line(row.api || "no API", 30)), h("span", { class: "in-session" }, " ", line(row.session, 40), ` #${row.number}`)),
      h("span", { class: "what", title: why ? `${said} – ${why}` : said }, line(said, 300), why ? h("span", { class: "reason" }, " – ", line(why, 300)) : null),
      h("span", { class: "code" }, row.status || ""),
      h("span", { class: "took" }, row.open ? "…" : span(row.duration)),
      h("span", { class: "marks" }, marksOf(row).map(([mark, title, word]) => h("span", { title }, mark, h("span", { class: "hidden" }, " ", word, " "))))));
  }

  indexOfSelected() {
    return this.selected === null ? -1 : this.rows.findIndex((row) => keyOf(row) === this.selected);
  }

  /** Selects the row so many rows further down, and makes it visible. */
  move(step) {
    if (!this.rows.length) return;
    const next = Math.max(0, Math.min(this.rows.length - 1, this.indexOfSelected() + step));
    this.select(this.rows[next], next);
  }

  select(row, at) {
    const height = this.height();
    this.selected = keyOf(row);
    if (at * height < this.window.scrollTop) this.window.scrollTop = at * height;
    const bottom = (at + 1) * height - this.window.clientHeight;
    if (bottom > this.window.scrollTop) this.window.scrollTop = bottom;
    this.draw();
    if (read().view === "request") this.openSelected();
    else this.focusSelected();
  }

  focusSelected() {
    const made = this.made.get(this.selected);
    if (made) made.node.firstChild.focus({ preventScroll: true });
    else if (this.rows.length) this.window.focus();
    else this.text.blur();
  }

  /** To the first row, which is the newest that a search found. */
  moveToFirst() {
    this.selected = null;
    this.move(1);
  }

  openFirst() {
    this.selected = null;
    this.move(1);
    this.openSelected();
  }

  openSelected() {
    const row = this.rows[this.indexOfSelected()];
    if (row && row.until) sayGone();
    else if (row) go(address("request", [row.session, row.number], read().query));
  }
}

const sayGone = () => say("The server that had this request is no more");

/** Whether a row has the value of a filter; some outcomes are groups of others. */
function fits(row, name, value) {
  if (name === "outcome" && value === "cut") return Boolean(row.cut);
  if (name === "outcome" && value === "unanswered") return UNANSWERED.includes(row.outcome);
  return row[name] === value;
}

function contains(row, words) {
  if (!words.length) return true;
  const text = [row.text, row.problem, row.model, row.path, row.scenario, row.api, row.session, row.outcome, row.cut, row.status, row.fault,
    ...(row.quirks || [])].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}
