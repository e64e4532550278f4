// What the server sends while the page is open: requests, sessions, reloads, what is recorded.

const MOST = 20000;
const MOST_RECORDED = 2000;
const AGAIN = 1500; // ms until the next try to connect
const HIDDEN = 30000; // ms after which a page that is not visible gives its connection back

export const store = {
  hello: null,
  connected: false,
  rows: [], // {row}, in the order of `at`
  before: [], // {row} of servers that are no more; `row.until` is when the next one began
  byKey: new Map(),
  sessions: [],
  problems: [],
  reloads: 0,
  recorded: [],
  skipped: 0,
};

const listeners = new Set();
let source = null;
let timer = null;
let stale = false; // whether the rows are those of the connection before

export const listen = (listener) => listeners.add(listener);
export const keyOf = (row) => `${row.session} ${row.number}${row.until ? ` until ${row.until}` : ""}`;

function changed(what) {
  for (const listener of listeners) listener(what);
}

function add(row) {
  const key = keyOf(row);
  const known = store.byKey.get(key);
  if (known && known.row.at === row.at) {
    known.row = row;
    return;
  }
  if (known) store.rows.splice(store.rows.indexOf(known), 1); // of a session that was reset
  const made = { row };
  store.byKey.set(key, made);
  const last = store.rows.at(-1);
  store.rows.push(made);
  if (last && last.row.at > row.at) store.rows.sort((one, other) => one.row.at - other.row.at);
}

function trim() {
  if (store.rows.length <= MOST) return;
  for (const { row } of store.rows.splice(0, store.rows.length - MOST)) store.byKey.delete(keyOf(row));
}

function forget() {
  if (!stale) return;
  stale = false;
  store.rows = [];
  store.byKey.clear();
  store.recorded = [];
  store.skipped = 0;
}

/** Keeps the rows of a server that is no more; what was open then is not over, and never will be. */
function keepRows(until) {
  const kept = store.rows.map(({ row }) => ({ row: { ...row, until, open: false, cut: row.open ? "server ended" : row.cut } }));
  store.before = [...store.before, ...kept].slice(-MOST);
  store.rows = [];
  store.byKey.clear();
}

const EVENTS = {
  hello(data) {
    if (store.hello && store.hello.began !== data.began) keepRows(data.began);
    store.hello = data;
    store.problems = data.problems || [];
    store.connected = true;
    stale = store.rows.length > 0;
  },
  requests(rows) {
    forget();
    for (const row of rows) add(row);
    trim();
  },
  ready: forget,
  skipped(data) {
    store.skipped += data.count;
  },
  sessions(data) {
    store.sessions = data;
  },
  reload(data) {
    store.problems = data.problems || [];
    store.reloads += 1;
    if (store.hello) store.hello.scenarios = data.scenarios;
  },
  recorded(lines) {
    store.recorded = [...store.recorded, ...lines].slice(-MOST_RECORDED);
  },
};

/** Connects, and again whenever the connection is lost. */
export function connect() {
  clearTimeout(timer);
  if (source) source.close();
  source = new EventSource("/_mockllm/ui/events");
  for (const [name, handle] of Object.entries(EVENTS)) {
    source.addEventListener(name, (event) => {
      handle(JSON.parse(event.data));
      changed(name);
    });
  }
  source.addEventListener("error", () => {
    disconnect();
    timer = setTimeout(connect, AGAIN);
  });
}

function disconnect() {
  if (source) source.close();
  source = null;
  store.connected = false;
  changed("connection");
}

// A browser has few connections for each server: a page that is not visible keeps none.
let hiding = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(() => {
      clearTimeout(timer);
      disconnect();
    }, HIDDEN);
  } else if (!source) connect();
});
addEventListener("online", () => source || connect());
