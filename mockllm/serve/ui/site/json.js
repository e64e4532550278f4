// JSON as a tree that folds. Its parts are made when they are opened.
import { button, count, h, line, long } from "./dom.js";

const AT_ONCE = 200; // members that are made at once
const OPEN = 6; // members of an object that is open at first

/** A number that JavaScript cannot hold exactly, as it is written. */
class Written {
  constructor(text) {
    this.text = text;
  }
}

const exact = (key, value, context) =>
  typeof value === "number" && context && context.source !== undefined && String(value) !== context.source
    ? new Written(context.source) : value;

function parse(text) {
  try {
    return { value: JSON.parse(text, exact) };
  } catch { // no JSON, or nested too deep
    return null;
  }
}

const isTree = (value) => value !== null && typeof value === "object" && !(value instanceof Written);

function leaf(value) {
  if (value instanceof Written) return h("span", { class: "j-number" }, value.text);
  if (typeof value === "string") return h("span", { class: "j-string" }, "\"", long(value, 1000), "\"");
  return h("span", { class: "j-" + (value === null ? "null" : typeof value) }, String(value));
}

const named = (name) => name === null ? null : [h("span", { class: "j-name" }, line(name)), ": "];

function node(name, value, depth) {
  if (!isTree(value)) return h("div", { class: "j-leaf" }, named(name), leaf(value));
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const unit = list ? "item" : "member";
  const made = h("details", { class: "j-tree" }, h("summary", {}, named(name), h("span", { class: "note" },
    `${list ? "[" : "{"} ${count(entries.length, unit)} ${list ? "]" : "}"}`)));
  const more = (from) => {
    const part = entries.slice(from, from + AT_ONCE).map(([key, one]) => node(key, one, depth + 1));
    made.append(...part);
    const rest = entries.length - from - AT_ONCE;
    if (rest <= 0) return;
    const next = button(`show ${count(Math.min(rest, AT_ONCE), "more " + unit)} of ${rest}`, () => {
      next.remove();
      more(from + AT_ONCE);
    }, { class: "more" });
    made.append(next);
  };
  made.addEventListener("toggle", () => made.childNodes.length === 1 && more(0));
  if (depth < 2 || (depth < 5 && entries.length <= OPEN)) {
    more(0);
    made.open = true;
  }
  return made;
}

/** A text as a tree if it is JSON, and as it is. */
export function jsonView(text, what) {
  const found = parse(text);
  const raw = () => h("pre", { tabindex: "0", "aria-label": what }, long(text, 20000));
  if (!found) return h("div", {}, text ? h("p", { class: "note" }, "Not JSON; as it was sent:") : null, text ? raw() : h("p", { class: "note" }, "No body."));
  const place = h("div", { class: "json" }, node(null, found.value, 0));
  const toggle = button("As text", () => {
    const asTree = place.firstChild.tagName === "PRE";
    place.replaceChildren(asTree ? node(null, found.value, 0) : raw());
    toggle.replaceChildren(asTree ? "As text" : "As a tree");
  });
  return h("div", {}, h("p", { class: "buttons" }, toggle), place);
}
