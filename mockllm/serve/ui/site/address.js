// The state of the page is the part of the address after "#": #/view/step/step?name=value.

const encode = (text) => encodeURIComponent(text.toWellFormed ? text.toWellFormed() : text);

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address as {view, steps, query}. */
export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...steps] = path.split("/").map(decode);
  return { view: view || "requests", steps, query: new URLSearchParams(query) };
}

/** The address of a view; steps and values may be any text. */
export function address(view, steps = [], query = {}) {
  const entries = query instanceof URLSearchParams ? [...query] : Object.entries(query);
  const kept = entries.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = kept.map(([name, value]) => `${encode(name)}=${encode(String(value))}`).join("&");
  return "#/" + [view, ...steps].map((one) => encode(String(one))).join("/") + (text ? "?" + text : "");
}

/** The query with other values; an empty one removes its name. */
export function changed(query, values) {
  const found = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) found.delete(name);
    else found.set(name, value);
  }
  return found;
}

/** Changes values of the present address, without a step in the history. */
export function replace(values) {
  const { view, steps, query } = read();
  history.replaceState(null, "", address(view, steps, changed(query, values)));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function go(to) {
  location.hash = to;
}
