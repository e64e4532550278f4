// What is recorded: what was written where, what was read in part and why, what was redacted.
import { address, read } from "./address.js";
import { clock, count, fill, get, h, line, number } from "./dom.js";
import { listen, store } from "./live.js";

export class Recording {
  constructor(place) {
    this.place = place;
    this.timer = null;
    listen((what) => {
      if (["recorded", "hello"].includes(what) && read().view === "recording") this.show();
    });
  }

  /** Shows the state of the recording, at most twice a second. */
  show() {
    this.again = Boolean(this.timer);
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.again && read().view === "recording") this.show();
    }, 500);
    this.load();
  }

  async load() {
    let found;
    try {
      found = await get("recording");
    } catch (error) {
      fill(this.place, h("h2", {}, "Recording"), h("p", { class: "box" }, error.message));
      return;
    }
    if (read().view !== "recording") return;
    clearTimeout(this.later);
    if (found.waiting) this.later = setTimeout(() => read().view === "recording" && this.load(), 1000);
    const totals = found.totals || {};
    fill(this.place, h("h2", { tabindex: "-1" }, "Recording"),
      h("dl", { class: "facts" },
        h("dt", {}, "mode"), h("dd", {}, line(found.mode || "")),
        h("dt", {}, "folder"), h("dd", {}, h("code", {}, line(found.folder || ""))),
        Object.entries(found.upstreams || {}).map(([api, url]) => [h("dt", {}, "upstream of ", line(api)), h("dd", {}, h("code", {}, line(url)))]),
        h("dt", {}, "waiting"), h("dd", {}, `${count(found.waiting || 0, "answer")} to be written`),
        h("dt", {}, "so far"), h("dd", {}, line(Object.entries(totals).map(([name, value]) => `${number(value)} ${name.replace("_", " ")}`).join(", ")))),
      (found.lines || []).length ? table(found.lines) : h("p", { class: "note" }, "Nothing was recorded yet."),
      found.dropped ? h("p", { class: "note" }, `${number(found.dropped)} older lines are not shown.`) : null);
  }
}

const KEPT_AS = { neutral: "scenario text", partial: "in part" };

function table(lines) {
  return h("div", { class: "scroll" }, h("table", { class: "recorded" }, h("caption", { class: "hidden" }, "What was recorded, newest first"),
    h("thead", {}, h("tr", {}, ["time", "outcome", "from", "scenario", "kept as", "redacted"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, [...lines].reverse().map((one) => h("tr", {},
      h("td", {}, typeof one.at === "number" ? clock(one.at) : ""),
      h("td", {}, one.lost ? h("span", { class: "badge k-data-lost" }, "∅ lost") : one.outcome === "skipped" ? "skipped" : "recorded"),
      h("td", {}, line(one.source || "", 120)),
      h("td", {}, one.scenario ? h("a", { href: address("scenario", [one.scenario], { turn: one.turn }) }, line(one.scenario, 120),
        one.turn === null || one.turn === undefined ? "" : ` turn ${one.turn + 1}`) : h("span", { class: "note" }, "none"),
      one.scenario ? h("small", {}, line(`${one.scenario}.yaml`)) : null),
      h("td", {}, KEPT_AS[one.outcome] || "", one.description ? h("small", {}, one.description) : null,
        one.not_found ? h("small", {}, "! ", one.not_found) : null),
      h("td", {}, one.redacted.map(([kind, times]) => h("div", {}, line(kind), ` ${number(times)}×`))))))));
}

export const isRecording = () => Boolean(store.hello && store.hello.recording);
