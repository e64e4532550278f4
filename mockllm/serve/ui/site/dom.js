// Makes elements. Everything that is shown is hostile: a string becomes text nodes, never markup,
// and characters that are not visible, or that turn the order of others, become escapes.

const SPECIAL = new RegExp(
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
  + "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff"
  + "\\p{Cs}\\u{e0000}-\\u{e0fff}]", "gu");
const CONTROLS = new RegExp(SPECIAL.source + "|[\\t\\n]", "gu");
const USUAL = /^[ -~]*$/; // most texts: there is nothing to look for
const SHORT = 4000;
const MORE = 100000;
const MOST_OF_ATTRIBUTE = 400;

const hex = (code) => code.toString(16);

function escaped(text) {
  const code = text.codePointAt(0);
  if (text === "\n") return "\\n";
  if (text === "\t") return "\\t";
  if (text === "\r") return "\\r";
  if (code < 0x100) return "\\x" + hex(code).padStart(2, "0");
  return code > 0xffff ? `\\u{${hex(code)}}` : "\\u" + hex(code).padStart(4, "0");
}

/** A text as one line for attributes and options: special characters as escapes, shortened. */
export function plain(text, most = MOST_OF_ATTRIBUTE) {
  if (text.length <= most && USUAL.test(text)) return text;
  const found = cut(String(text), most).replace(CONTROLS, escaped);
  return String(text).length > most ? found + "…" : found;
}

/** The first characters of a text, without half of a pair of surrogates at the end. */
export function cut(text, most) {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

/** Nodes for a text; its line ends and tabs stay, unless it is shown on one line. */
export function show(text, oneLine = false) {
  const nodes = document.createDocumentFragment();
  if (USUAL.test(text)) {
    if (text) nodes.append(document.createTextNode(text));
    return nodes;
  }
  let at = 0;
  for (const found of text.matchAll(oneLine ? CONTROLS : SPECIAL)) {
    if (found.index > at) nodes.append(document.createTextNode(text.slice(at, found.index)));
    const mark = document.createElement("b");
    mark.className = "escape";
    mark.textContent = escaped(found[0]);
    nodes.append(mark);
    at = found.index + found[0].length;
  }
  if (at < text.length) nodes.append(document.createTextNode(text.slice(at)));
  return nodes;
}

/** As show(); what is beyond `most` characters is shown on request. */
export function long(text, most = SHORT) {
  const nodes = document.createDocumentFragment();
  const first = cut(text, most);
  nodes.append(show(first));
  if (first.length === text.length) return nodes;
  const rest = text.slice(first.length);
  const button = h("button", { type: "button", class: "more" }, `show ${count(rest.length, "more character")}`);
  button.addEventListener("click", () => button.replaceWith(long(rest, MORE)));
  nodes.append(" ", button);
  return nodes;
}

/** An element. Attributes that are functions listen to events; strings among children are shown. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : plain(value, name === "href" ? 10000 : MOST_OF_ATTRIBUTE));
  }
  put(made, children);
  return made;
}

/** Appends children: nodes, strings, numbers, lists of them; nothing for null, undefined, false. */
export function put(parent, children) {
  for (const one of [children].flat(9)) {
    if (one === null || one === undefined || one === false) continue;
    parent.append(one instanceof Node ? one : long(String(one)));
  }
  return parent;
}

/** Replaces what is in an element. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, children);
}

/** A text on one line, its line ends as escapes. */
export const line = (text, most = 300) => {
  const nodes = show(cut(String(text), most), true);
  if (String(text).length > most) nodes.append("…");
  return nodes;
};

const numbers = new Intl.NumberFormat("en");
export const number = (value) => numbers.format(value);

/** "1 request", "2 requests". */
export const count = (value, unit) => `${number(value)} ${unit}${value === 1 ? "" : "s"}`;

/** A time span, given in seconds. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds >= 100) return `${seconds.toFixed(0)} s`;
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  const ms = seconds * 1000;
  return `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0).replace(/^(-?\d+)\.0+$/, "$1")} ms`;
}

/** The time of day, given in seconds since 1970. */
export function clock(at) {
  const date = new Date(at * 1000);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.`
    + String(date.getMilliseconds()).padStart(3, "0");
}

/** A short message for everybody, screen readers included. */
export function say(text) {
  const status = document.getElementById("status");
  fill(status, text);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => fill(status), 5000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch { // such as outside of a secure context
    say("The browser does not allow copying: select the text");
  }
}

export function save(text, name, kind = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = plain(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say("Saved");
}

/** A button that does something. */
export const button = (text, press, attributes = {}) =>
  h("button", { type: "button", click: press, ...attributes }, text);

/** A text as it is, with buttons that copy and save it. */
export function copyable(text, what, file, attributes = {}) {
  return h("div", { class: "copyable" },
    h("pre", { tabindex: "0", "aria-label": what, ...attributes }, long(text, 20000)),
    h("p", { class: "buttons" },
      button("Copy", () => copy(text), { "aria-label": `Copy ${what}`, class: "copy" }),
      file && button("Download", () => save(text, file), { "aria-label": `Download ${what}` })));
}

/** The JSON answer of a control route. Its errors have the server's message. */
export async function get(path, signal) {
  const answer = await fetch("/_mockllm/ui/" + path, { signal, headers: { accept: "application/json" } });
  const found = await answer.json().catch(() => null);
  if (answer.ok && found !== null) return found;
  const error = found && found.error;
  const message = typeof error === "string" ? error : error && error.message;
  throw new Error(message || `The server answers ${answer.status}.`);
}
