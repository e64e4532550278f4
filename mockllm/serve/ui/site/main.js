// The page: which view the address names, keys, and whether the server is there.
import { address, changed, go, read, replace } from "./address.js";
import { count, fill, h, line, number, plain } from "./dom.js";
import { connect, listen, store } from "./live.js";
import { isRecording, Recording } from "./recording.js";
import { Request } from "./request.js";
import { Requests } from "./requests.js";
import { problemList, Scenarios } from "./scenarios.js";

const at = (id) => document.getElementById(id);
const lists = { requests: h("div", { class: "inner" }), scenarios: h("div", { class: "inner" }) };
const places = { request: h("div", { class: "inner" }), scenario: h("div", { class: "inner" }), recording: h("div", { class: "inner" }) };
at("list").append(...Object.values(lists));
at("detail").append(...Object.values(places));
const requests = new Requests(lists.requests, at("sessions"));
const request = new Request(places.request);
const scenarios = new Scenarios(lists.scenarios, places.scenario);
const recording = new Recording(places.recording);
const GROUPS = { requests: "requests", request: "requests", scenarios: "scenarios", scenario: "scenarios", recording: "recording" };
let shown = "";

function route() {
  const { view, steps } = read();
  const group = Object.hasOwn(GROUPS, view) ? GROUPS[view] : "requests";
  const detail = view === "request" ? "request" : group === "scenarios" ? "scenario" : group === "recording" ? "recording" : "";
  at("columns").dataset.view = Object.hasOwn(GROUPS, view) ? view : "requests";
  for (const [name, one] of Object.entries(lists)) one.hidden = name !== group;
  for (const [name, one] of Object.entries(places)) one.hidden = name !== detail;
  for (const link of at("views").children) {
    if (link.getAttribute("href") === `#/${group}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (group === "requests") requests.update();
  if (view === "request") request.show();
  else request.close();
  if (group === "scenarios") scenarios.show();
  else scenarios.close();
  if (group === "recording") recording.show();
  const now = [view, ...steps].join(" ");
  if (now !== shown) {
    at("detail").scrollTop = 0;
    if (shown.startsWith("request ") && view === "requests") requests.focusSelected();
    else if (shown && detail && view !== "scenarios") at("detail").focus({ preventScroll: true });
    shown = now;
  }
  title(view, steps);
}

function title(view, steps) {
  const first = view === "request" ? `${steps[0]} #${steps[1]}` : view === "scenario" ? steps[0] : view;
  document.title = `${plain(first, 80)} · mockllm`;
}

// What the server reports, once for each picture of the browser

let drawing = false;
function draw(what) {
  if (what === "hello" || what === "connection" || what === "reload") header();
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (["requests", "request"].includes(at("columns").dataset.view)) requests.update();
  });
}

function header() {
  const { hello, connected, problems } = store;
  fill(at("connection"), connected ? "● live" : "○ not connected, trying again");
  at("connection").className = connected ? "live" : "lost";
  document.documentElement.classList.toggle("disconnected", !connected && Boolean(hello));
  if (hello) fill(at("about"), line(hello.version || ""), " · ", count(hello.scenarios, "scenario"), hello.shared ? " · shared state" : "");
  at("recording-link").hidden = !isRecording();
  fill(at("notices"), problems.length ? h("details", { class: "box warn", id: "problems", open: problems.length < 4 },
    h("summary", {}, `! ${number(problems.length)} ${problems.length === 1 ? "problem" : "problems"} in the scenario files: the scenarios from before are served`),
    problemList(problems)) : null);
}

// Keys

const KEYS = new Map([
  ["j", () => list().move(1)], ["ArrowDown", () => list().move(1)],
  ["k", () => list().move(-1)], ["ArrowUp", () => list().move(-1)],
  ["Home", () => list().move(-Infinity)], ["End", () => list().move(Infinity)],
  ["Enter", () => list().openSelected()],
  ["p", () => requests.togglePause()],
  ["/", () => list().text.focus()],
  ["?", () => at("keys").showModal()],
  ["Escape", close],
]);
const MOVES = new Set(["ArrowDown", "ArrowUp", "Home", "End", "Enter"]);
const IN_LISTS = new Set(["j", "k", ...MOVES]);
const FROM_SEARCH = new Set(["ArrowDown", "ArrowUp", "Enter", "Escape"]); // the others move in its text

const list = () => (lists.requests.hidden ? scenarios : requests);

/** A key in a search box: to the rows, which keep the search. A second Escape, there, ends it. */
function fromSearch(event) {
  event.preventDefault(); // a browser empties the box at Escape
  if (event.key === "Enter") list().openFirst();
  else if (event.key === "Escape") list().focusSelected();
  else list().moveToFirst();
}

function close() {
  const { view, query } = read();
  if (view === "request") go(address("requests", [], changed(query, { view: "" })));
  else if (view === "scenario") go(address("scenarios", [], changed(query, { api: "", turn: "", attempt: "", play: "" })));
  else if (query.get("text")) replace({ text: "" });
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || at("keys").open) return;
  const { target, key } = event;
  if (target === list().text && FROM_SEARCH.has(key)) return fromSearch(event);
  const typing = target.matches("input, select, textarea");
  if (typing && key !== "Escape") return;
  if (typing) target.blur();
  if (key === "p" ? lists.requests.hidden : IN_LISTS.has(key) && at("columns").dataset.view === "recording") return;
  // In an open request, these keys belong to what has the focus.
  const inList = at("list").contains(target) || target === document.body || target === at("main");
  if (MOVES.has(key) && !inList) return;
  if (key === "Enter" && target.matches("button, summary, a[href]")) return;
  if (/^[1-6]$/.test(key) && read().view === "request") request.choose(Number(key) - 1);
  const press = KEYS.get(key);
  if (!press) return;
  event.preventDefault();
  press();
});

at("skip").addEventListener("click", () => at("main").focus());

// What is folded is printed, too.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("#detail details:not([open])")].slice(0, 2000);
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});

addEventListener("hashchange", route);
listen(draw);
route();
connect();
