// The scenarios that are served, their texts and problems, and how they play.
import { address, changed, read, replace } from "./address.js";
import { button, copyable, count, fill, get, h, line, number, plain, show } from "./dom.js";
import { listen, store } from "./live.js";
import { streamView } from "./stream.js";

/** Problems of files, each with its place. */
export const problemList = (problems) => h("ul", { class: "problems" }, problems.slice(0, 50).map((one) =>
  h("li", {}, h("code", {}, line(placeOf(one), 300)), " ", one.message)),
problems.length > 50 ? h("li", {}, `${number(problems.length - 50)} more`) : null);

const placeOf = (one) => [one.file, one.line, one.column].filter((value) => value !== null && value !== undefined && value !== "").join(":");

/** The length of the folder that all files have in common. */
function sharedFolder(files) {
  const first = files[0] || "";
  let at = first.lastIndexOf("/") + 1;
  while (at && !files.every((one) => one.startsWith(first.slice(0, at)))) at = first.lastIndexOf("/", at - 2) + 1;
  return at;
}

export class Scenarios {
  constructor(list, place) {
    this.list = list;
    this.place = place;
    this.data = null;
    this.name = null;
    this.text = h("input", { type: "search", placeholder: "name, file, tool  ( / )", "aria-label": "Search in the scenarios", input: () => replace({ text: this.text.value }) });
    this.names = h("ol", { class: "names" });
    this.count = h("output", { "aria-live": "polite" });
    listen((what) => {
      if (what === "reload" || (what === "hello" && this.data)) this.forget();
    });
  }

  forget() {
    this.data = null;
    this.name = null;
    const { view } = read();
    if (view === "scenarios" || view === "scenario") this.show();
  }

  async show() {
    if (!this.names.isConnected) fill(this.list, h("form", { class: "filters", submit: (event) => event.preventDefault() }, this.text, this.count), this.names);
    if (!this.data) {
      try {
        this.data = await get("scenarios");
      } catch (error) {
        fill(this.names, h("li", { class: "box warn" }, "! ", error.message));
        return;
      }
    }
    const { view, steps, query } = read();
    this.showNames(steps[0], query);
    if (view === "scenario") await this.showOne(steps[0]);
    else {
      this.name = null;
      fill(this.place, h("h2", {}, "Scenarios"), this.problems(this.data.problems),
        h("p", { class: "note" }, "Choose a scenario: its text, how it plays over each API, and how to call it."));
    }
  }

  problems(found) {
    return (found || []).length ? h("div", { class: "box warn", id: "file-problems" }, h("b", {}, `! ${count(found.length, "problem")} in the files`), problemList(found)) : null;
  }

  showNames(chosen, query) {
    const words = (query.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const all = this.data.scenarios;
    const fits = all.filter((one) => {
      const text = [one.name, one.description, one.file, ...(one.tags || []), ...(one.tools || [])].join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const shared = sharedFolder(all.map((one) => one.file).filter(Boolean));
    if (document.activeElement !== this.text) this.text.value = query.get("text") || "";
    this.count.replaceChildren(`${number(fits.length)} of ${count(all.length, "scenario")}`);
    fill(this.names, fits.slice(0, 2000).map((one) => {
      const played = Object.values(one.played || {}).reduce((sum, times) => sum + times, 0);
      return h("li", {}, h("a", { href: address("scenario", [one.name], { text: query.get("text") }), "aria-current": one.name === chosen ? "true" : null },
        h("b", {}, line(one.name, 120)), played ? h("span", { class: "badge k-right" }, `✓ played ${number(played)}×`) : null,
        h("small", {}, one.description ? line(one.description, 160) : (one.turns || []).length ? count(one.turns.length, "turn") : ""),
        one.file ? h("small", { class: "file" }, line(placeOf({ file: one.file.slice(shared), line: one.line }), 300)) : null));
    }));
  }

  /** The links of the list, and which of them has the focus or is open; -1: none. */
  links() {
    const all = [...this.names.querySelectorAll("a")];
    const focused = all.indexOf(document.activeElement);
    return [all, focused < 0 ? all.findIndex((one) => one.hasAttribute("aria-current")) : focused];
  }

  /** Moves the focus so many scenarios further down. */
  move(step) {
    const [all, at] = this.links();
    if (all.length) all[Math.max(0, Math.min(all.length - 1, at + step))].focus();
  }

  focusSelected() {
    const [all, at] = this.links();
    if (all.length) all[Math.max(0, at)].focus();
    else this.text.blur();
  }

  openSelected() {
    const [all, at] = this.links();
    if (at >= 0) all[at].click();
  }

  moveToFirst() {
    this.move(-Infinity);
  }

  openFirst() {
    const [all] = this.links();
    if (all.length) all[0].click();
  }

  async showOne(name) {
    if (this.name !== name) {
      this.name = name;
      this.one = null;
      this.playing = "";
      fill(this.place, h("p", { class: "note loading" }, "Loading …"));
      let found;
      try {
        found = await get(`scenario/${encodeURIComponent(name)}`);
      } catch (error) {
        if (this.name === name) fill(this.place, this.closing(), h("h2", {}, line(name)), h("p", { class: "box warn" }, "! ", error.message), this.problems(this.data.problems));
        return;
      }
      if (this.name !== name) return;
      this.one = found;
      this.build();
    }
    if (this.one) this.usePlay(read().query);
  }

  closing() {
    return h("p", { class: "closing" }, h("a", { href: address("scenarios", [], changed(read().query, { api: "", turn: "", play: "" })), class: "close" }, "✕ Close"));
  }

  build() {
    const { one } = this;
    const apis = (one.apis || []).length ? one.apis : (store.hello || {}).apis || [];
    const turns = one.turns || [];
    const option = (value, text) => {
      const made = h("option", {}, plain(text, 80));
      made.value = String(value);
      return made;
    };
    const pick = () => replace({ api: this.api.value, turn: this.turn.value, attempt: this.attempt.value === "1" ? "" : this.attempt.value, play: "" });
    this.api = h("select", { "aria-label": "API", change: pick }, apis.map((api) => option(api, api)));
    this.turn = h("select", { "aria-label": "turn", change: pick }, turns.map((turn) => option(turn.index, `turn ${turn.index + 1}`)));
    this.attempt = h("select", { "aria-label": "attempt", change: pick });
    this.played = h("div", { class: "played", "aria-live": "off" });
    this.curl = h("div");
    fill(this.place, this.closing(), h("h2", { tabindex: "-1" }, line(one.name)),
      one.description ? h("p", {}, one.description) : null,
      h("p", { class: "about" }, line([one.file && placeOf({ file: one.file, line: one.line }), one.route, ...(one.tags || []).map((tag) => `#${tag}`)].filter(Boolean).join(" · "))),
      this.problems(one.problems),
      turns.length ? h("table", { class: "turns" }, h("caption", { class: "hidden" }, "Turns"),
        h("thead", {}, h("tr", {}, ["turn", "what it does", "played"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, turns.map((turn) => h("tr", {}, h("th", { scope: "row" }, String(turn.index + 1)),
          h("td", {}, line(turn.title || "", 300), turn.attempts > 1 ? h("small", {}, ` ${turn.attempts} attempts`) : null),
          h("td", {}, playedTimes(one, turn.index)))))) : null,
      turns.length && apis.length ? h("section", { "aria-label": "Play" }, h("h3", {}, "Play"),
        h("form", { class: "filters", submit: (event) => event.preventDefault() }, this.api, this.turn, this.attempt,
          button("▶ In real time", () => this.play("time"), { class: "play-time" }), button("Show at once", () => this.play("once"), { class: "play-once" })), this.played) : null,
      h("h3", {}, "Text"), one.text ? source(one.text, one.first_line || 1, one.problems || []) : h("p", { class: "box" }, one.text_why || "The text is not known."),
      turns.length ? [h("h3", {}, "Call it"), this.curl] : null,
      one.test ? h("details", { open: true }, h("summary", {}, "As a test with mockllm_session"), copyable(one.test, "the test", "test_scenario.py", { id: "test-text" })) : null);
  }

  play(how) {
    this.playing = null;
    replace({ play: how, api: this.api.value, turn: this.turn.value });
  }

  /** Shows what the address chooses: API, turn, attempt, and whether it plays. */
  usePlay(query) {
    const set = (select, value) => {
      if (value !== null && [...select.options].some((one) => one.value === value)) select.value = value;
    };
    set(this.api, query.get("api"));
    set(this.turn, query.get("turn"));
    const turn = (this.one.turns || []).find((found) => String(found.index) === this.turn.value);
    const most = Math.min(100, turn ? turn.attempts || 1 : 1);
    fill(this.attempt, Array.from({ length: most }, (_, at) => h("option", { value: String(at + 1) }, `attempt ${at + 1}`)));
    this.attempt.hidden = most < 2;
    set(this.attempt, query.get("attempt"));
    this.showCurl();
    const how = query.get("play");
    const wanted = how ? [how, this.api.value, this.turn.value, this.attempt.value].join(" ") : "";
    if (wanted === this.playing) return;
    this.playing = wanted;
    fill(this.played);
    if (how) this.load(wanted, how);
  }

  async load(wanted, how) {
    const query = new URLSearchParams({ api: this.api.value, turn: this.turn.value, attempt: this.attempt.value });
    try {
      const stream = await get(`play/${encodeURIComponent(this.name)}?${query}`);
      if (this.playing === wanted) fill(this.played, streamView(stream, { play: how === "time" }));
    } catch (error) {
      if (this.playing === wanted) fill(this.played, h("p", { class: "box warn" }, "! ", error.message));
    }
  }

  showCurl() {
    const key = `${this.api.value} ${this.turn.value}`;
    if (this.curl.mark === key && this.curl.of === this.one) return;
    this.curl.mark = key;
    this.curl.of = this.one;
    const own = (object, name) => object && Object.hasOwn(object, name) ? object[name] : null;
    const text = own(own(this.one.curl, this.api.value), this.turn.value);
    fill(this.curl, text ? copyable(text, `the curl command (${this.api.value}, turn ${Number(this.turn.value) + 1})`, null, { id: "curl-text" })
      : h("p", { class: "note" }, "There is no curl command for this turn."));
  }

  close() {
    this.name = null;
    fill(this.place);
  }
}

const playedTimes = (one, turn) => {
  const times = one.played && Object.hasOwn(one.played, turn) ? one.played[turn] : 0;
  return times ? h("span", { class: "badge k-right" }, `✓ ${number(times)}×`) : h("span", { class: "note" }, "not yet");
};

const MOST_LINES = 3000;

/** A text with the numbers of its lines; lines with a problem are marked. */
function source(text, first, problems) {
  const bad = new Map(problems.map((one) => [one.line, one.message]));
  const lines = text.replace(/\n$/, "").split("\n");
  return h("div", { class: "source", tabindex: "0", role: "region", "aria-label": "Text of the scenario" },
    lines.slice(0, MOST_LINES).map((one, at) => h("div", { class: bad.has(first + at) ? "src bad" : "src" },
      h("span", { class: "no" }, String(first + at)), h("code", {}, one.length > 2000 ? one : show(one)),
      bad.has(first + at) ? h("span", { class: "note" }, " ! ", bad.get(first + at)) : null)),
    lines.length > MOST_LINES ? h("p", { class: "note" }, `${number(lines.length - MOST_LINES)} more lines: see the file`) : null);
}

